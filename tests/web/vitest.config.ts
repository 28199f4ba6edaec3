// Unit tests of the page's pure parts, in Node.
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["unit/*.test.ts"] } });
