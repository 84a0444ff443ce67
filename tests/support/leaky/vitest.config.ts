// Runs tests that leak on purpose, for harness/support.test.ts to see them fail.
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { fromSource } from '../../vitest.config.ts'
import { testLimitMs } from '../patience.ts'

export default defineConfig({
  ...fromSource,
  root: join(import.meta.dirname, '..', '..'),
  test: {
    include: ['./support/leaky/*.leak.ts'],
    globalSetup: './support/postgres.ts',
    testTimeout: testLimitMs,
    hookTimeout: testLimitMs,
  },
})
