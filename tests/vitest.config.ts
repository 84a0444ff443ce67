import { defineConfig } from 'vitest/config'

// Tests import the packages by name and get their TypeScript source, through this condition of their export maps.
// Setting the list replaces the defaults of Vite, so they are repeated.
export const conditions: string[] = ['postbox-source', 'module', 'node', 'development|production']

export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['../packages/*/src/**/*.test.ts', './{architecture,types}/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['./{integration,conformance}/**/*.test.ts'],
          globalSetup: './support/postgres.ts',
          testTimeout: 20_000,
          hookTimeout: 30_000,
        },
      },
    ],
  },
})
