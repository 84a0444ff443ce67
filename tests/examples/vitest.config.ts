import { defineConfig } from 'vitest/config'

// Runs the examples as a user does, from `dist`: build first.
export default defineConfig({
  test: {
    name: 'examples',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    // A run starts a Postgres, trades for seconds and drains for up to thirty.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
