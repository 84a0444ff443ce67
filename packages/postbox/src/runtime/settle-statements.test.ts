import { describe, expect, test } from 'vitest'
import { names } from '../../../../tests/support/scripted-settler.ts'
import {
  acked,
  dead,
  failed,
  followed,
  leaseOf,
  released,
  snoozed,
} from '../../../../tests/support/settlements.ts'
import type { BatchKind, SettlementBatch } from '../core/batching.ts'
import type { Settlement } from '../core/settlement.ts'
import { type StatementRules, statementOf } from './settle-statements.ts'

const rules: StatementRules = { names, wake: 'poll', deadLetters: 'table', delivered: 'delete' }
const { token } = leaseOf('1')
const otherToken = '0190163d-8694-739b-9aea-966c26f8ad99'

function batchOf(kind: BatchKind, settlements: readonly Settlement[], isNamed = false): SettlementBatch {
  const entries = settlements.map((settlement) => ({ settlement, maxBatch: 1_000, refusals: 0 }))
  return { kind, isNamed, entries }
}

/** Two of a kind, by different claims. */
const two = (kind: typeof acked): readonly Settlement[] => [kind('1'), kind('2', { token: otherToken })]

const fences = ['{1,2}', `{${token},${otherToken}}`]
const first = { seq: '1', token }
const second = { seq: '2', token: otherToken }
const jsonOf = (statement: { readonly values: readonly unknown[] }): unknown =>
  JSON.parse(statement.values[0] as string)

describe('statementOf', () => {
  test.each([
    ['delete', 'delete_acked', acked],
    ['bury', 'delete_acked', dead],
  ] as const)('%s (%s) says who may write which row', (kind, name, make) => {
    const statement = statementOf(batchOf(kind, two(make)), { ...rules, deadLetters: 'discard' })

    expect(statement).toMatchObject({ name, values: fences })
  })

  // leaseOf: the third delivery. Its own is not counted any more, whether it was counted or not.
  test('release: who may write which row, and how many deliveries there were before', () => {
    const statement = statementOf(batchOf('release', two(released)), rules)

    expect(statement).toMatchObject({ name: 'release_leases', values: [...fences, '{2,2}'] })
  })

  test.each([
    ['delete', acked],
    ['follow', followed],
  ] as const)('%s: what was delivered is kept where that is asked for, and only there', (kind, make) => {
    const keeps = (delivered: StatementRules['delivered']): boolean =>
      statementOf(batchOf(kind, [make('1')]), { ...rules, delivered }).text.includes(names.delivered)

    expect([keeps('table'), keeps('delete')]).toEqual([true, false])
  })

  test('bury: what is discarded is no delivered message', () => {
    const discarding = { ...rules, delivered: 'table', deadLetters: 'discard' } as const

    expect(statementOf(batchOf('bury', [dead('1')]), discarding).text).not.toContain(names.delivered)
  })

  test.each([
    ['bury', 'table', 'bury_dead'],
    ['bury', 'in-place', 'quarantine_dead'],
    ['bury', 'discard', 'discard_dead'],
    ['quarantine', 'table', 'quarantine_dead'],
  ] as const)(
    '%s (%s): where a key goes on without a message, and only there, that is noted',
    (kind, deadLetters, name) => {
      const settlements = [dead('1', { isOrdered: true }), dead('2', { token: otherToken })]
      const statement = statementOf(batchOf(kind, settlements), { ...rules, deadLetters })
      const plain = statementOf(batchOf(kind, two(dead)), { ...rules, deadLetters })

      expect(statement.name).toBe(name)
      expect(jsonOf(statement)).toMatchObject([{ ...first, isNoted: true }, second])
      expect([statement, plain].map(({ text }) => text.includes('after_dead'))).toEqual([true, false])
    },
  )

  test('follow: the rows that go, and what each of them publishes', () => {
    const { name, values } = statementOf(batchOf('follow', two(followed)), rules)

    expect([name, ...values.slice(0, 2)]).toEqual(['delete_with_follow_ons', ...fences])
    expect(JSON.parse(values[2] as string)).toMatchObject([
      { cause: '1', queue: 'letters' },
      { cause: '2', queue: 'letters' },
    ])
  })

  test.each([
    ['poll', false],
    ['always', true],
  ] as const)('follow: wakes as the outbox does (%s)', (wake, isNotifying) => {
    const { text } = statementOf(batchOf('follow', [followed('1')]), { ...rules, wake })

    expect(text.includes('pg_notify')).toBe(isNotifying)
  })

  test('snooze: until when and how many deliveries there were before, for each', () => {
    const statement = statementOf(batchOf('snooze', two(snoozed)), rules)

    expect(statement.name).toBe('snooze_messages')
    expect(jsonOf(statement)).toEqual([
      { ...first, deliveriesBefore: 2, delayMs: 7.5 },
      { ...second, deliveriesBefore: 2, delayMs: 7.5 },
    ])
  })

  test('reschedule: until when and why, for each; not what was thrown', () => {
    const statement = statementOf(batchOf('reschedule', two(failed)), rules)

    expect(statement.name).toBe('reschedule_retried')
    expect(jsonOf(statement)).toEqual([
      { ...first, delayMs: 5.4, error: 'TypeError: bad' },
      { ...second, delayMs: 5.4, error: 'TypeError: bad' },
    ])
  })

  test.each([
    ['bury', 'table', 'bury_dead'],
    ['bury', 'in-place', 'quarantine_dead'],
    ['quarantine', 'table', 'quarantine_dead'],
    ['quarantine', 'discard', 'quarantine_dead'],
  ] as const)('%s (%s): why, and after how many runs, for each', (kind, deadLetters, name) => {
    // One run less than its lease would say: it was not run this time.
    const notRun = two(dead).map((one) => ({ ...one, attempts: 1 }) as Settlement)
    const statement = statementOf(batchOf(kind, notRun), { ...rules, deadLetters })
    const why = { reason: 'rejected', error: 'TypeError: bad', attempts: 1 }

    expect(statement.name).toBe(name)
    expect(jsonOf(statement)).toEqual([
      { ...first, ...why },
      { ...second, ...why },
    ])
  })

  test.each([
    ['release', released],
    ['snooze', snoozed],
    ['reschedule', failed],
  ] as const)('%s: takes names back if it is asked to, and only then', (kind, make) => {
    const takesNames = (isNamed: boolean): boolean =>
      statementOf(batchOf(kind, [make('1')], isNamed), rules).text.includes('(timer_id, fired_timer_id) =')

    expect([true, false].map(takesNames)).toEqual([true, false])
  })

  test('a kind that nobody knows is an error of ours, and so is a place', () => {
    const elsewhere = { ...rules, deadLetters: 'elsewhere' as never }

    expect(() => statementOf(batchOf('bury', []), elsewhere)).toThrow('unreachable')
    expect(() => statementOf(batchOf('shrug' as never, []), rules)).toThrow('unreachable')
  })
})
