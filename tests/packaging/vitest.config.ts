import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Sees the workspaces as users do, through `dist`: build first.
export default defineConfig({
  test: {
    name: 'packaging',
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['*.test.ts'],
    // `npm pack` lays the readme into the package and takes it away again: two at once would rob each other.
    fileParallelism: false,
    // npm pack, npm install, tsc and a fresh Postgres take seconds each, and have some minutes: see runCommand.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
