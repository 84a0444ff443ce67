import { defineConfig, type ViteUserConfig } from 'vitest/config'

// Tests import the packages by name and get their TypeScript source, through this condition of their export maps.
// Setting the list replaces the defaults of Vite, so they are repeated.
const resolve = { conditions: ['postbox-source', 'module', 'node', 'development|production'] }

/** Source instead of dist, in the tests (ssr) and in the global setup (__vitest__): neither takes it from the other. */
export const fromSource: ViteUserConfig = {
  resolve,
  ssr: { resolve },
  environments: { __vitest__: { resolve } },
}

const onPostgres = { globalSetup: './support/postgres.ts', testTimeout: 20_000, hookTimeout: 30_000 }

export default defineConfig({
  ...fromSource,
  root: import.meta.dirname,
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['../{packages/*,benchmarks}/src/**/*.test.ts', './{architecture,types}/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: { name: 'integration', include: ['./{integration,conformance}/**/*.test.ts'], ...onPostgres },
      },
      // The launcher and the support of the tests: apart, so that they run once and not on every version of Postgres.
      { extends: true, test: { name: 'harness', include: ['./harness/**/*.test.ts'], ...onPostgres } },
    ],
  },
})
