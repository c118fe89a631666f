// Browsers refuse Web Workers to pages that are opened from disk. The search then runs in a hidden frame instead.
if (location.protocol === "file:") {
  const load = (scope, url) =>
    new Promise((done, failed) => {
      const script = scope.document.createElement("script");
      Object.assign(script, { src: url, onload: done, onerror: failed });
      scope.document.body.append(script);
    });

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => load(this.scope, next)), Promise.resolve());
      this.ready = load(this.scope, url);
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
