// Runs tests that leak on purpose, for integration/support.test.ts to see them fail.
import { defineConfig } from 'vitest/config'
import { conditions } from '../../vitest.config.ts'

export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { include: ['./*.leak.ts'], globalSetup: '../postgres.ts' },
})
