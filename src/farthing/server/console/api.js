// The HTTP interface, with the token of this tab. A token is kept for the tab and nowhere else.

const KEPT = "farthing.token";
const LOOK = 700;

export class Problem extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.kind = error.kind;
    this.field = error.field;
    this.title = TITLES[error.kind] ?? null;
  }
}

const TITLES = {
  does_not_fit: "Too little is left.",
  invalid: "This question cannot be asked as it stands.",
  unsupported: "This question cannot be asked as it stands.",
  not_found: "Nothing here.",
  too_many_requests: "Too fast.",
  unavailable: "Not now.",
  unreachable: "The service cannot be reached.",
  tariff_changed: "Prices have changed.",
};

let token = sessionStorage.getItem(KEPT);
let whenSignedOut = () => {};
const told = new Map();

export const signedIn = () => token !== null;
export function onSignedOut(act) { whenSignedOut = act; }
export function keep(given) {
  told.clear();
  token = given;
  sessionStorage.setItem(KEPT, given);
}
export function forget() {
  told.clear();
  token = null;
  sessionStorage.removeItem(KEPT);
}

async function send(method, path, body, { signal, headers } = {}) {
  const given = { Authorization: `Bearer ${token}`, ...headers };
  if (body !== undefined) given["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(`/v1${path}`, {
      method, headers: given, signal, cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { kind: "unreachable", message: "Is it running? Try again in a moment." });
  }
  const found = await response.json().catch(() => ({}));
  signal?.throwIfAborted();
  if (response.ok) return { status: response.status, found };
  const told = found.error ?? { kind: "failed", message: "The service failed." };
  if (response.status === 401 && token !== null) {
    forget();
    whenSignedOut();
    throw new Problem(401, { kind: "signed_out", message: told.message });
  }
  throw new Problem(response.status, told);
}

export const path = (...parts) => parts.map((one) => `/${encodeURIComponent(one)}`).join("");
export const get = async (at, options) => (await send("GET", at, undefined, options)).found;
export const remove = async (at) => (await send("DELETE", at)).found;
export const post = async (at, body, options) => (await send("POST", at, body ?? {}, options)).found;

// What stays the same while somebody is signed in is asked for once.
export function described(at) {
  if (!told.has(at)) told.set(at, get(at).catch((error) => { told.delete(at); throw error; }));
  return told.get(at);
}

// Something that may become a job: waits for it; `progress` is told of it and may cancel it.
export async function patiently(method, at, body, { progress = () => {}, once = false } = {}) {
  const headers = once ? { "Idempotency-Key": key() } : {};
  const first = await send(method, at, body, { headers });
  if (first.status !== 202) return first.found;
  let job = first.found.job;
  while (job.state === "running") {
    progress(job);
    await new Promise((done) => setTimeout(done, LOOK));
    job = (await get(path("jobs", job.id))).job;
  }
  if (job.status >= 400 || job.result === null) {
    throw new Problem(job.status ?? 500, job.result?.error ?? { kind: "failed", message: `It ended as ${job.state}.` });
  }
  return job.result;
}

function key() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
}
