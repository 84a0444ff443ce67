import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { OutboxError } from '../core/errors.ts'
import { before, statementTimeout } from './deadline.ts'

/** Resolves when everything that could run without waiting has run, unhandled rejections included. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const late = (): Error => new Error('too late')
const never = new Promise<never>(() => {})

describe('before', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  test('gives the value that comes in time, and keeps no timer', async () => {
    await expect(before(Promise.resolve(42), 1_000, late)).resolves.toBe(42)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('passes the failure that comes in time on as it is, and keeps no timer', async () => {
    const failure = new Error('mine')

    await expect(before(Promise.reject(failure), 1_000, late)).rejects.toBe(failure)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('fails when the time is up, not a millisecond earlier, and keeps no timer', async () => {
    const told: string[] = []
    const waiting = before(never, 1_000, late).catch((error: Error) => told.push(error.message))
    vi.advanceTimersByTime(999)
    await settled()
    const early = [...told]
    vi.advanceTimersByTime(1)
    await waiting

    expect([early, told]).toEqual([[], ['too late']])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('makes no error while there is time', async () => {
    const asked = vi.fn(late)
    await before(Promise.resolve(), 1_000, asked)
    vi.advanceTimersByTime(2_000)

    expect(asked).not.toHaveBeenCalled()
  })

  test('a failure that comes after the time is left unhandled by nobody', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): unknown => unhandled.push(reason)
    process.on('unhandledRejection', note)
    let fail = (_error: Error): void => {}
    const slow = new Promise<never>((_, reject) => {
      fail = reject
    })
    const waiting = expect(before(slow, 1_000, late)).rejects.toThrow('too late')
    vi.advanceTimersByTime(1_000)
    await waiting
    fail(new Error('and it failed, too'))
    await settled()
    process.off('unhandledRejection', note)

    expect(unhandled).toEqual([])
  })
})

test('a statement that took too long is an error that says which and how long', () => {
  const error = statementTimeout('claim_messages', 10_000)

  expect(OutboxError.is(error, 'OUTBOX_STATEMENT_TIMEOUT')).toBe(true)
  expect(error.message).toContain('claim_messages took longer than 10000 ms')
})
