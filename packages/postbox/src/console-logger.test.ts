import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { consoleLogger } from './console-logger.ts'

const levels = ['debug', 'info', 'log', 'warn', 'error'] as const

describe('consoleLogger', () => {
  let printed: unknown[][] = []

  beforeEach(() => {
    printed = []
    for (const level of levels) {
      vi.spyOn(console, level).mockImplementation((...line) => {
        printed.push([level, ...line])
      })
    }
  })

  afterEach(() => {
    vi.restoreAllMocks()
  })

  test.each(['warn', 'error'] as const)('%s is printed with its fields, on its own level', (level) => {
    consoleLogger({ level, message: 'it happened', fields: { queue: 'orders' } })

    expect(printed).toEqual([[level, '[postbox] it happened', { queue: 'orders' }]])
  })

  test('an error is printed behind the fields, whatever was thrown', () => {
    consoleLogger({ level: 'error', message: 'it happened', fields: {}, error: null })

    expect(printed).toEqual([['error', '[postbox] it happened', {}, null]])
  })

  test.each(['debug', 'info'] as const)('%s is not printed', (level) => {
    consoleLogger({ level, message: 'it happened', fields: {} })

    expect(printed).toEqual([])
  })
})
