import { afterEach, describe, expect, test, vi } from 'vitest'
import type { LogEntry, Logger } from './core/log.ts'
import { safeLogger } from './safe-logger.ts'

const entry: LogEntry = { level: 'warn', message: 'it happened', fields: {} }

afterEach(() => {
  vi.restoreAllMocks()
})

describe('safeLogger', () => {
  test('gives each entry to the logger as it is', () => {
    const got: LogEntry[] = []
    safeLogger((one) => got.push(one))(entry)

    expect(got).toEqual([entry])
    expect(got[0]).toBe(entry)
  })

  test.each([
    [undefined, [['[postbox] it happened', {}]]],
    [false, []],
  ] as const)('prints to the console when the logger is %s: %j', (given, lines) => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    safeLogger(given)(entry)

    expect(warn.mock.calls).toEqual(lines)
  })

  test.each<[string, Logger]>([
    [
      'throws',
      () => {
        throw new Error('the disk is full')
      },
    ],
    ['rejects', (async () => Promise.reject(new Error('the disk is full'))) as Logger],
  ])('a logger that %s is nobody else’s trouble', async (_how, logger) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    safeLogger(logger)(entry)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)

    expect(unhandled).toEqual([])
  })
})
