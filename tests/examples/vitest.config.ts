import { defineConfig } from 'vitest/config'

// Runs the examples as a user does, from `dist`: build first.
export default defineConfig({
  test: {
    name: 'examples',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    // A run starts a Postgres, trades for seconds and drains for up to two minutes; a test of an example has a minute, and so have its hooks. What they say is worth more than that it took too long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Most of that is waiting. By itself vitest would leave a core of two idle.
    maxWorkers: '100%',
    maxConcurrency: 3,
  },
})
