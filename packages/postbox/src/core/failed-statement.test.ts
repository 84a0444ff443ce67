import { describe, expect, test } from 'vitest'
import {
  isDataError,
  isLockTimeout,
  isOutcomeUnknown,
  isRefused,
  isWholesale,
  needsNewConnection,
  type Writing,
} from './failed-statement.ts'

function wrapped(error: unknown, times: number): unknown {
  return times === 0 ? error : wrapped(new Error(`layer ${times}`, { cause: error }), times - 1)
}

const failed = (code: string): Error => Object.assign(new Error('failed'), { code })

/** What the settler and the claimer meet, and whether one row is to blame. */
const states: readonly (readonly [title: string, code: string, isDataError: boolean, isUnknown: boolean])[] =
  [
    ['a character that the encoding does not have', '22021', true, false],
    ['a text that jsonb does not take', '22P05', true, false],
    ['a number out of range', '22003', true, false],
    ['a violated check', '23514', true, false],
    ['a violated unique index', '23505', true, false],
    ['a value too long for an index', '54000', true, false],
    ['what a trigger raised', 'P0001', true, false],
    ['what a trigger raised with a state of its own', 'U0001', true, false],
    ['a view that does not take the row', '44000', true, false],
    ['a deadlock', '40P01', false, false],
    ['a failed serialisation', '40001', false, false],
    ['a lock that was not had in time', '55P03', false, false],
    ['a statement that was cancelled or out of time', '57014', false, false],
    ['a full disk', '53100', false, false],
    ['too many connections', '53300', false, false],
    ['a missing table', '42P01', false, false],
    ['a missing right', '42501', false, false],
    ['a read-only server', '25006', false, false],
    ['a transaction that failed before', '25P02', false, false],
    // A password that is being changed must not throw away what was acknowledged.
    ['a login that was refused', '28P01', false, false],
    ['a role that may not log in', '28000', false, false],
    ['a missing database', '3D000', false, false],
    ['a missing schema', '3F000', false, false],
    ['a configuration file that is wrong', 'F0000', false, false],
    ['an error of the server', 'XX000', false, false],
    ['a lost connection', '08006', false, true],
    ['a connection that could not be made', '08001', false, true],
    ['a session that was terminated', '57P01', false, true],
    ['a server that crashed', '57P02', false, true],
    ['a server that starts', '57P03', false, true],
  ]

describe('isDataError', () => {
  test.each(states)('%s (%s): %s', (_title, code, isData) => {
    expect(isDataError(failed(code))).toBe(isData)
  })

  test('sees through what was wrapped around the error', () => {
    expect(isDataError(wrapped(failed('23514'), 3))).toBe(true)
  })

  test.each([null, undefined, '22021', new Error('connection lost'), failed('ECONNRESET')])(
    'an error without a state is no fault of a row (case %#)',
    (error) => {
      expect(isDataError(error)).toBe(false)
    },
  )
})

// Unknown: a settlement that is tried again and finds its row gone may have landed before, and is not a lost lease for sure.
describe('isOutcomeUnknown', () => {
  test.each(states.map(([title, code, , isUnknown]) => [title, code, isUnknown] as const))(
    '%s (%s): %s',
    (_title, code, isUnknown) => {
      expect(isOutcomeUnknown(failed(code))).toBe(isUnknown)
    },
  )

  test.each([
    undefined,
    new Error('Connection terminated unexpectedly'),
    failed('ECONNRESET'),
    failed('EPIPE'),
    failed('CONNECTION_CLOSED'),
    failed('OUTBOX_STATEMENT_TIMEOUT'),
  ])('without an answer of Postgres nobody knows (case %#)', (error) => {
    expect(isOutcomeUnknown(error)).toBe(true)
  })

  test('sees through what was wrapped around the error', () => {
    expect(isOutcomeUnknown(wrapped(failed('57P01'), 3))).toBe(true)
    expect(isOutcomeUnknown(wrapped(failed('40P01'), 3))).toBe(false)
  })
})

describe('needsNewConnection', () => {
  test.each([
    ['a lost answer', failed('08006'), true],
    ['a server that became read-only: the next connection may lead to another', failed('25006'), true],
    ['an error without a state', new Error('Connection terminated unexpectedly'), true],
    ['a deadlock', failed('40P01'), false],
    ['a violated check', failed('23514'), false],
  ])('after %s', (_title, error, isNeeded) => {
    expect(needsNewConnection(error)).toBe(isNeeded)
  })
})

const writings: readonly Writing[] = ['rows', 'named', 'follow-ons', 'arming', 'burials']

// Refused: waiting would not help. What is not is tried again whole, and nothing is claimed until it works.
describe('isRefused', () => {
  test.each(states)('rows, %s (%s): only where a row is to blame', (_title, code, isData) => {
    expect(isRefused(failed(code), 'rows')).toBe(isData)
  })

  test.each(states)(
    'burials, %s (%s): by the row, or by the dead letters as they are',
    (_title, code, isData) => {
      expect(isRefused(failed(code), 'burials')).toBe(isData || code.startsWith('42'))
    },
  )

  test.each(states)(
    'named, %s (%s): by the row, or because somebody is about to take the name',
    (_title, code, isData) => {
      expect(isRefused(failed(code), 'named')).toBe(isData || code === '55P03')
    },
  )

  test.each(states)(
    'follow-ons, %s (%s): by the row, where we may not insert, or (timers) because somebody is about to take the name',
    (_title, code, isData) => {
      expect(isRefused(failed(code), 'follow-ons')).toBe(isData || code === '42501')
      expect(isRefused(failed(code), 'arming')).toBe(isData || code === '42501' || code === '55P03')
    },
  )

  test.each(['55006', '55000', '55P02'])('another thing that is in use (%s): no', (code) => {
    expect(writings.map((writing) => isRefused(failed(code), writing))).toEqual(writings.map(() => false))
  })

  test.each(writings)('%s: what has no state was not refused', (writing) => {
    expect(isRefused(new Error('Connection terminated unexpectedly'), writing)).toBe(false)
    expect(isRefused(undefined, writing)).toBe(false)
  })

  test('sees through what was wrapped around the error', () => {
    expect(isRefused(wrapped(failed('23514'), 3), 'rows')).toBe(true)
    expect(isRefused(wrapped(failed('42501'), 3), 'burials')).toBe(true)
    expect(isRefused(wrapped(failed('42501'), 3), 'follow-ons')).toBe(true)
    expect(isRefused(wrapped(failed('55P03'), 3), 'named')).toBe(true)
  })
})

describe('isWholesale', () => {
  test.each(['42P01', '42501', '42703', '42883'])('a table, a right, a column, a function (%s)', (code) => {
    expect(isWholesale(failed(code))).toBe(true)
    expect(isWholesale(wrapped(failed(code), 3))).toBe(true)
  })

  test.each(states.filter(([, code]) => !code.startsWith('42')))('not %s (%s)', (_title, code) => {
    expect(isWholesale(failed(code))).toBe(false)
  })

  test('not what has no state', () => {
    expect(isWholesale(new Error('42P01'))).toBe(false)
    expect(isWholesale(null)).toBe(false)
  })
})

describe('isLockTimeout', () => {
  test.each(states)('%s (%s): only a lock that was not had in time', (_title, code) => {
    expect(isLockTimeout(failed(code))).toBe(code === '55P03')
  })

  test('sees through what was wrapped around the error', () => {
    expect([isLockTimeout(wrapped(failed('55P03'), 3)), isLockTimeout(undefined)]).toEqual([true, false])
  })
})
