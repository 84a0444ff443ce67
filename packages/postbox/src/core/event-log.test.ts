import { describe, expect, test } from 'vitest'
import { eventCatalogue } from './event-catalogue.ts'
import { logEntryOf } from './event-log.ts'
import type { DeadEvent, OutboxEvent, WarningCode } from './events.ts'
import type { LogLevel } from './log.ts'
import { warningCatalogue } from './warning-catalogue.ts'

const about = { queue: 'orders', handler: 'ship', id: 'id-1', seq: '1', attempt: 2, deliveries: 3 }
const durationMs = 12.4
const error = new Error('not yet')
const warning: OutboxEvent = { kind: 'warning', code: 'no_subscribers', message: 'nobody', fields: {} }
const lost: OutboxEvent = {
  kind: 'lease_lost',
  ...about,
  durationMs,
  phase: 'terminal',
  mayHaveLanded: false,
}
const dead: DeadEvent = {
  kind: 'dead',
  ...about,
  durationMs,
  reason: 'rejected',
  attempts: 2,
  error,
  key: 'customer-1',
  isParked: false,
  headers: { type: 'placed', authorization: 'Bearer secret' },
  type: 'placed',
  source: null,
  target: 'orders',
}

/** An event of each kind, and how loudly it is logged. */
const samples: readonly [OutboxEvent, LogLevel | null][] = [
  [{ kind: 'published', queue: 'orders', count: 1, bytes: 9, durationMs }, null],
  [{ kind: 'claimed', queue: 'orders', handler: 'ship', count: 0 }, null],
  [{ kind: 'dispatched', ...about, bytes: 9, isSuspect: false }, null],
  [{ kind: 'dispatched', ...about, bytes: 9, isSuspect: true }, 'warn'],
  [{ kind: 'acked', ...about, durationMs, followOns: 0 }, null],
  [{ kind: 'retried', ...about, durationMs, delayMs: 999.6, error }, 'warn'],
  [{ kind: 'snoozed', ...about, durationMs, delayMs: 1_000 }, null],
  [{ kind: 'released', ...about, durationMs: null }, null],
  [dead, 'error'],
  [{ kind: 'dlq_written', ...about, reason: 'rejected', isQuarantined: false }, null],
  [{ kind: 'dlq_written', ...about, reason: 'rejected', isQuarantined: true }, 'warn'],
  [lost, 'warn'],
  [{ kind: 'lease_renewed', count: 3 }, null],
  [{ kind: 'settle_failed', write: 'delete', messages: 2, error, delayMs: 50 }, 'error'],
  [{ kind: 'follow_on_failed', ...about, error }, null],
  [{ kind: 'drain_timeout', stopTimeoutMs: 1_000, messages: 2 }, 'warn'],
  [{ kind: 'listener_lost', error, delayMs: 50 }, 'warn'],
  [{ kind: 'listener_restored' }, 'info'],
  [{ kind: 'queue_paused', queue: 'orders', handler: 'ship', by: 'jo', at: new Date(0) }, 'warn'],
  [{ kind: 'queue_resumed', queue: 'orders', handler: 'ship', by: null, at: null }, 'info'],
  [{ kind: 'breaker_opened', error }, 'error'],
  [{ kind: 'breaker_closed' }, 'info'],
  [{ kind: 'claim_failed', error, delayMs: 50 }, 'error'],
  [warning, 'warn'],
]

const printed = (event: OutboxEvent) => logEntryOf(event)!

describe('the log', () => {
  test.each(samples.map(([event, level]) => ({ kind: event.kind, level, event })))(
    'prints $kind as $level, with its kind',
    ({ event, level, kind }) => {
      const entry = logEntryOf(event)

      expect(entry === null ? null : [entry.level, entry.event]).toEqual(
        level === null ? null : [level, kind],
      )
    },
  )

  test('has a sample of every kind here', () => {
    expect(new Set(samples.map(([{ kind }]) => kind))).toEqual(new Set(Object.keys(eventCatalogue)))
  })

  test.each(samples.filter(([, level]) => level !== null).map(([event]) => event))(
    'explains every field that it prints of $kind',
    (event) => {
      const explained = Object.keys(eventCatalogue[event.kind].fields)

      expect(Object.keys(printed(event).fields).filter((field) => !explained.includes(field))).toEqual([])
    },
  )

  test('prints a retry with its message, whole milliseconds, and its error beside them', () => {
    expect(printed({ kind: 'retried', ...about, durationMs, delayMs: 999.6, error })).toEqual({
      level: 'warn',
      event: 'retried',
      message: 'handler failed, message will be retried',
      fields: { ...about, durationMs: 12, delayMs: 1_000 },
      error,
    })
  })

  test('does not say that a handler failed which only asked for another run', () => {
    const asked = { kind: 'retried', ...about, durationMs, delayMs: 1 } as const

    expect(printed({ ...asked, error: undefined }).message).toBe('handler asked for another run')
    expect(printed({ ...asked, error: null }).message).toBe('handler failed, message will be retried')
  })

  test('says nothing of claims when what became of messages can be written again: a stop claims no more', () => {
    expect(printed({ kind: 'breaker_closed' }).message).toBe('what became of messages can be written again')
  })

  test('prints all that an alert needs of a dead message, and the names of its headers without their values', () => {
    const { kind: _kind, error: _error, ...said } = dead
    const entry = printed(dead)

    expect(entry.fields).toEqual({ ...said, durationMs: 12, headers: ['type', 'authorization'] })
    expect(JSON.stringify(entry)).not.toContain('secret')
    expect(entry.error).toBe(error)
  })

  test('prints what is null as null, and an error that is null, too', () => {
    const entry = printed({ ...dead, durationMs: null, key: null, error: null })

    expect(entry).toMatchObject({ fields: { durationMs: null, key: null }, error: null })
  })

  test('has no error where nothing was thrown', () => {
    expect('error' in printed({ kind: 'drain_timeout', stopTimeoutMs: 1, messages: 1 })).toBe(false)
    expect('error' in printed({ kind: 'retried', ...about, durationMs, delayMs: 1, error: undefined })).toBe(
      false,
    )
  })

  test.each([
    ['running', false, 'lease lost while its handler runs'],
    ['terminal', false, 'lease lost: the handler outlived it'],
    ['retry', false, 'lease lost: the handler outlived it'],
    ['terminal', true, 'settled before the connection broke, or lease lost'],
  ] as const)('says of a lease that is lost (%s, may have landed: %s) "%s"', (phase, mayHaveLanded, text) => {
    const entry = printed({ ...lost, phase, mayHaveLanded })

    expect(entry.message).toMatch(new RegExp(`^${text}`))
    expect(entry.fields).toEqual({ ...about, durationMs: 12, phase, mayHaveLanded })
  })

  test.each([
    ['delete', 50, 'settling failed, trying again'],
    ['delete', 0, 'settling failed, trying again'],
    ['bury', 1_000, 'settling failed, trying again'],
    ['bury', 0, 'burying a message failed, it is quarantined now'],
    ['bury', null, 'a settlement cannot be written: the message will be delivered again when its lease ends'],
    [
      'delete',
      null,
      'a settlement cannot be written: the message will be delivered again when its lease ends',
    ],
  ])('says of a %s that fails, to be tried again after %s ms: "%s"', (write, delayMs, message) => {
    const event = { kind: 'settle_failed', write, messages: 1, error, delayMs } as const

    expect(printed(event)).toMatchObject({ message, fields: { write, messages: 1, delayMs }, error })
  })

  test('prints a warning as it says, with its code and its values', () => {
    const fields = { max: 1, needed: 3 }
    const entry = printed({ kind: 'warning', code: 'pool_too_small', message: 'too small', fields, error })

    expect(entry).toEqual({
      level: 'warn',
      event: 'warning',
      message: 'too small',
      fields: { code: 'pool_too_small', ...fields },
      error,
    })
  })

  test('says as information, not as a warning, that a client cannot listen, and nothing else', () => {
    const codes = Object.keys(warningCatalogue) as WarningCode[]
    const levels = codes.map((code) => [code, printed({ ...warning, code }).level])

    expect(levels.filter(([, level]) => level !== 'warn')).toEqual([['cannot_listen', 'info']])
  })
})
