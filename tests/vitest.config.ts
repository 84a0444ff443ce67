import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { coverage } from './coverage.ts'
import { LongestFirst } from './support/longest-first.ts'
import { testLimitMs } from './support/patience.ts'

// Tests import the packages by name and get their TypeScript source, through this condition of their export maps.
// Setting the list replaces the defaults of Vite, so they are repeated.
const resolve = { conditions: ['postbox-source', 'module', 'node', 'development|production'] }

/** Source instead of dist, in the tests (ssr) and in the global setup (__vitest__): neither takes it from the other. */
export const fromSource: ViteUserConfig = {
  resolve,
  ssr: { resolve },
  environments: { __vitest__: { resolve } },
}

const minutes = 60_000
const patient = { testTimeout: testLimitMs, hookTimeout: testLimitMs }
const onPostgres = { globalSetup: './support/postgres.ts', ...patient }

export default defineConfig({
  ...fromSource,
  root: import.meta.dirname,
  test: {
    coverage,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: [
            '../{packages/*,benchmarks}/src/**/*.test.ts',
            './{architecture,types,ordering}/**/*.test.ts',
          ],
          ...patient,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['./{integration,conformance,chaos}/**/*.test.ts'],
          ...onPostgres,
          // Ninety files that import much the same: what one leaves behind in its process is the business of the leak check.
          isolate: false,
        },
      },
      // The launcher and the support of the tests: apart, so that they run once and not on every version of Postgres.
      { extends: true, test: { name: 'harness', include: ['./harness/**/*.test.ts'], ...onPostgres } },
      // `npm run test:large`: the same as in the small, thousands of times. One file at a time, so that none starves another.
      {
        extends: true,
        test: {
          name: 'large',
          include: ['./large/**/*.test.ts'],
          ...onPostgres,
          testTimeout: 30 * minutes,
          fileParallelism: false,
        },
      },
    ],
  },
})
