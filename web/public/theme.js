// Before the first paint: the theme chosen with the toggle, if any (otherwise the system's).
try {
  const theme = localStorage.getItem("monet-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is off: the system's theme it is.
}
