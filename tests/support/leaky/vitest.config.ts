// Runs tests that leak on purpose, for integration/support.test.ts to see them fail.
import { defineConfig } from 'vitest/config'
import { fromSource } from '../../vitest.config.ts'

export default defineConfig({
  ...fromSource,
  root: import.meta.dirname,
  test: { include: ['./*.leak.ts'], globalSetup: '../postgres.ts' },
})
