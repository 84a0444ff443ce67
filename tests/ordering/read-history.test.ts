import { describe, expect, test } from 'vitest'
import { createHistoryReader } from './read-history.ts'
import { createLogReader, millisecondsOf } from './read-log.ts'

const midnight = Date.UTC(2026, 0, 31)

/** A transaction, as PostgreSQL prints it, so many seconds after midnight. */
function transaction(second: number, ...changes: readonly string[]): readonly string[] {
  const time = `2026-01-31 00:00:${String(second).padStart(2, '0')}.5+00`
  return ['BEGIN 7', ...changes.map((change) => `table s.${change}`), `COMMIT 7 (at ${time})`]
}

const inserted = (seq: number, id: string, key: string | null) =>
  `outbox: INSERT: seq[bigint]:${seq} id[uuid]:'${id}' key[text]:${key === null ? 'null' : `'${key}'`} lease_token[uuid]:null`
const updated = (seq: number, token: string | null, given: { until?: number; deliveries?: number } = {}) => {
  const { until = 10, deliveries = 1 } = given
  const lease =
    token === null
      ? 'lease_token[uuid]:null leased_until[timestamp with time zone]:null'
      : `lease_token[uuid]:'${token}' leased_until[timestamp with time zone]:'2026-01-31 00:00:${until}+00'`
  return `outbox: UPDATE: seq[bigint]:${seq} id[uuid]:'?' key[text]:'k' deliveries[integer]:${deliveries} ${lease}`
}
const deleted = (seq: number) => `outbox: DELETE: seq[bigint]:${seq}`
const started = (process: string, message: string, deliveries = 1) =>
  `history: INSERT: what[text]:'started' process[text]:'${process}' run[integer]:1 message[uuid]:'${message}' deliveries[integer]:${deliveries} called_ms[double precision]:5.25 outcome[text]:null`
const ended = (process: string, outcome: string) =>
  `history: INSERT: what[text]:'ended' process[text]:'${process}' run[integer]:1 message[uuid]:null outcome[text]:'${outcome}'`
const marked = (process: string, what: string) =>
  `history: INSERT: what[text]:'${what}' process[text]:'${process}' run[integer]:null`

function historyOf(...transactions: readonly (readonly string[])[]) {
  const log = createLogReader()
  const reader = createHistoryReader('s')
  for (const lines of transactions) reader.add(log.read(lines))
  return { reader, ...reader.history({ committed: [], rolledBack: [] }) }
}

describe('the log', () => {
  test('is read with quotes, line ends, brackets, nulls and tables whose columns need quotes', () => {
    const lines = transaction(
      1,
      `t: INSERT: a[text]:'it''s [x]:''y''\nz' "order"[bigint]:-1 b[text]:null c[text]:'null' d[bytea]:'\\x00'`,
    )
    expect(createLogReader().read(lines)).toEqual([
      {
        at: { place: 1, ms: midnight + 1_500 },
        changes: [
          {
            table: 's.t',
            kind: 'INSERT',
            row: { a: "it's [x]:'y'\nz", order: '-1', b: null, c: 'null', d: '\\x00' },
            before: null,
          },
        ],
      },
    ])
  })

  test('tells the primary key that was changed', () => {
    const lines = transaction(1, `t: UPDATE: old-key: seq[bigint]:1 new-tuple: seq[bigint]:2 a[text]:'x'`)
    const change = { table: 's.t', kind: 'UPDATE', row: { seq: '2', a: 'x' }, before: { seq: '1' } }
    expect(createLogReader().read(lines)).toMatchObject([{ changes: [change] }])
  })

  test('is counted on over its portions', () => {
    const log = createLogReader()
    log.read(transaction(1))
    expect(log.read([...transaction(2), ...transaction(2)]).map(({ at }) => at.place)).toEqual([2, 3])
  })

  test('is refused where it says something else', () => {
    expect(() => createLogReader().read(['message: transactional: 1'])).toThrow(
      'expected a change, got: message',
    )
    expect(() => millisecondsOf('2026-01-31 00:00:00+02')).toThrow('expected a time in UTC')
  })

  test('tells times to the microsecond', () => {
    expect(millisecondsOf('2026-01-31 00:00:01.000250+00')).toBe(midnight + 1_000.25)
    expect(millisecondsOf('2026-01-31 00:00:01+00')).toBe(midnight + 1_000)
  })
})

describe('the history', () => {
  test('has messages in the order of commits, those of a transaction as they were published', () => {
    const { commits } = historyOf(
      transaction(1, inserted(2, 'b', 'k'), inserted(3, 'c', null)),
      transaction(2, inserted(1, 'a', 'k')),
    )
    expect(commits.map(({ id, key, committed }) => [id, key, committed.place])).toEqual([
      ['b', 'k', 1],
      ['c', null, 1],
      ['a', 'k', 2],
    ])
  })

  test('has a message for later where it gets its key, with another seq or with the same', () => {
    const { commits, reader } = historyOf(
      transaction(1, inserted(1, 'a', null), inserted(2, 'b', null)),
      transaction(2, inserted(3, 'c', 'k')),
      transaction(3, `outbox: UPDATE: old-key: seq[bigint]:1 new-tuple: seq[bigint]:4 key[text]:'k'`),
      transaction(4, `outbox: UPDATE: seq[bigint]:2 key[text]:'k'`),
      transaction(5, updated(3, 'T')),
      transaction(6, deleted(4)),
    )
    expect(commits.map(({ id, key, committed }) => [id, key, committed.place])).toEqual([
      ['c', 'k', 2],
      ['a', 'k', 3],
      ['b', 'k', 4],
    ])
    expect([reader.acked, reader.waiting]).toEqual([1, 2])
  })

  test('has a run with its claim, its renewed lease, its end and its acceptance', () => {
    const { runs, commits, reader } = historyOf(
      transaction(1, inserted(1, 'a', 'k')),
      transaction(2, updated(1, 'T', { until: 10 })),
      transaction(3, started('P', 'a')),
      transaction(4, updated(1, 'T', { until: 20 })),
      transaction(5, ended('P', 'done')),
      transaction(6, deleted(1)),
    )
    expect(runs).toMatchObject([
      {
        id: 'a',
        process: 'P',
        calledMs: 5.25,
        started: { place: 3 },
        ended: { at: { place: 5 }, outcome: 'done' },
        lease: { claimed: { place: 2 }, untilMs: midnight + 20_000 },
        accepted: { place: 6 },
      },
    ])
    expect(commits).toMatchObject([{ gone: { at: { place: 6 }, how: 'acked' } }])
    expect([reader.acked, reader.waiting]).toEqual([1, 0])
  })

  test('accepts the run under whose lease the row was deleted, not another of the message', () => {
    const { runs } = historyOf(
      transaction(1, inserted(1, 'a', 'k')),
      transaction(2, updated(1, 'T', { until: 10, deliveries: 1 })),
      transaction(3, started('P', 'a', 1)),
      transaction(12, updated(1, 'U', { until: 20, deliveries: 2 })),
      transaction(13, started('Q', 'a', 2)),
      transaction(14, deleted(1)),
    )
    expect(runs.map(({ process, accepted }) => [process, accepted?.place ?? null])).toEqual([
      ['P', null],
      ['Q', 6],
    ])
  })

  test('accepts no run where a row was deleted that nobody had leased', () => {
    const { runs, commits } = historyOf(
      transaction(1, inserted(1, 'a', 'k')),
      transaction(2, updated(1, 'T')),
      transaction(3, started('P', 'a')),
      transaction(4, updated(1, null)),
      transaction(5, deleted(1)),
    )
    expect(runs).toMatchObject([{ accepted: null }])
    expect(commits).toMatchObject([{ gone: { how: 'acked' } }])
  })

  test('gives a run the last claim of its delivery: one that was put back uncounted had the same number', () => {
    const { runs } = historyOf(
      transaction(1, inserted(1, 'a', 'k')),
      transaction(2, updated(1, 'T', { until: 10 })),
      transaction(3, updated(1, null, { deliveries: 0 })),
      transaction(4, updated(1, 'U', { until: 20 })),
      transaction(5, started('P', 'a')),
    )
    expect(runs).toMatchObject([{ lease: { claimed: { place: 4 } } }])
  })

  test('gives a run that is recorded late its own claim, not that of who has the message now', () => {
    const { runs } = historyOf(
      transaction(1, inserted(1, 'a', 'k')),
      transaction(2, updated(1, 'T', { until: 10, deliveries: 1 })),
      transaction(12, updated(1, 'U', { until: 20, deliveries: 2 })),
      transaction(13, started('P', 'a', 1)),
    )
    expect(runs).toMatchObject([{ lease: { claimed: { place: 2 } } }])
  })

  test('has no claim for a run that had none', () => {
    const { runs } = historyOf(transaction(1, inserted(1, 'a', 'k')), transaction(2, started('P', 'a')))
    expect(runs).toMatchObject([{ lease: null }])
  })

  test('tells a burial from an acknowledgement', () => {
    const { commits, reader } = historyOf(
      transaction(1, inserted(1, 'a', 'k')),
      transaction(2, deleted(1), `outbox_dead: INSERT: dead_seq[bigint]:1 id[uuid]:'a'`),
    )
    expect(commits).toMatchObject([{ gone: { how: 'buried' } }])
    expect([reader.acked, reader.waiting]).toEqual([0, 0])
  })

  test('has when processes stood still, and when they were killed', () => {
    const { absences } = historyOf(
      transaction(1, marked('P', 'stopping')),
      transaction(2, marked('P', 'continuing')),
      transaction(3, marked('Q', 'killing')),
      transaction(4, marked('P', 'stopping')),
      transaction(5, marked('P', 'continuing')),
    )
    expect(absences.map(({ process, from, to }) => [process, from.place, to?.place ?? null])).toEqual([
      ['P', 1, 2],
      ['Q', 3, null],
      ['P', 4, 5],
    ])
  })
})
