// Starts the page and, in a build, the service worker that keeps it offline.
import { render } from "preact";
import "./style.css";
import { boot } from "./state";
import { App, update } from "./views/app";

async function keepOffline() {
  const { serviceWorker } = navigator;
  const registration = await serviceWorker.register("./sw.js");
  const offer = () => {
    const { waiting } = registration;
    if (!waiting || !serviceWorker.controller) return;
    update.value = () => {
      serviceWorker.addEventListener("controllerchange", () => location.reload());
      waiting.postMessage("take-over");
    };
  };
  offer();
  registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", offer));
}

render(<App />, document.getElementById("app")!);
void boot();
// Without it (an old browser, no secure context) the page works, but not offline.
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  addEventListener("load", () => void keepOffline().catch(() => {}));
}
