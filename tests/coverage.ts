import type { ViteUserConfig } from 'vitest/config'

type Coverage = NonNullable<NonNullable<ViteUserConfig['test']>['coverage']>

const source = 'packages/postbox/src'

/**
 * What the unit tests reach, measured by `--coverage`. Decisions and statements need no database to be tested, so each of their lines is run
 * by a unit test; the rest is run by the integration tests, too, and only printed here.
 *
 * Files that no test imports are not looked for outside the root of the tests: core/every-module.test.ts imports them all.
 */
export const coverage: Coverage = {
  provider: 'v8',
  allowExternal: true,
  include: [`**/${source}/**/*.ts`],
  exclude: ['**/*.test.ts'],
  thresholds: {
    [`../${source}/core/**`]: { lines: 100 },
    [`../${source}/sql/**`]: { lines: 100 },
  },
  reporter: [['text', { skipFull: true, maxCols: 110 }], 'text-summary'],
  reportsDirectory: '../coverage',
}
