// An OpenID provider for tests: node provider.mjs FOLDER PORT AUDIENCE SECONDS
// Clients get access tokens as JWTs by their secret; what they claim is in CLAIMS.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const [folder, port, audience, seconds] = process.argv.slice(2);
const home = pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`);
const { default: Provider } = await import(home.href);

const CLAIMS = {
  ann: { role: "analyst", person: "ann" },
  narrow: { role: ["analyst"], person: "ann", tables: ["slow"] },
  team: { role: ["staff", "owner"], person: "team" },
  both: { role: "owner analyst", person: "team" },
  nobody: { person: "ann" },
  unnamed: { role: "analyst" },
};
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig" };

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [{ ...key, alg: "RS256" }] },
  cookies: { keys: [randomUUID()] },
  clients: Object.keys(CLAIMS).map((name) => ({
    client_id: name,
    client_secret: `secret of ${name}`,
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
    token_endpoint_auth_method: "client_secret_post",
  })),
  extraTokenClaims: (_, token) => CLAIMS[token.clientId],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: "",
        audience: resource === "https://farthing.example" ? audience : resource,
        accessTokenTTL: Number(seconds),
        accessTokenFormat: "jwt",
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
