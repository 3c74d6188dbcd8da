/* Search from the disk. Browsers start no worker from a file, so it runs in a hidden frame instead.
   The name is the one by which the theme knows that it need not bring a script for this from elsewhere. */
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script")
          Object.assign(script, { src: source, onload: done, onerror: failed })
          inside.document.body.append(script)
        })
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve())
      this.ready = load(address)
    }

    postMessage(data) {
      const inside = this.frame.contentWindow
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
