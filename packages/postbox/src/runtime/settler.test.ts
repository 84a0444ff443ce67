import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import type { Lease } from '../core/lease.ts'
import type { LogEntry } from '../core/log.ts'
import type { Settlement } from '../core/settlement.ts'
import { resolveNames } from '../sql/names.ts'
import type { Failpoint } from './failpoint.ts'
import type { Lane } from './lane.ts'
import { createSettler } from './settler.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const token = '0190163d-8694-739b-9aea-966c26f8ad91'
const thrown = new TypeError('bad')
const why = { error: 'TypeError: bad', thrown }

function leaseOf(seq: string): Lease {
  const fixed = { token, id: `id-${seq}`, queue: 'orders', key: null, body: new Uint8Array(0), headers: {} }
  return { ...fixed, seq, attempt: 2, deliveries: 3, createdAt: new Date(0), generation: null }
}

const fieldsOf = (seq: string) => ({ queue: 'orders', id: `id-${seq}`, seq })
const acked = (seq: string): Settlement => ({ write: 'delete', lease: leaseOf(seq) })
const unstarted = (seq: string): Settlement => ({ write: 'release', lease: leaseOf(seq) })
const failed = (seq: string): Settlement => ({
  write: 'reschedule',
  lease: leaseOf(seq),
  delayMs: 5.4,
  ...why,
})
const dead = (seq: string): Settlement => ({ write: 'bury', lease: leaseOf(seq), reason: 'rejected', ...why })

const refused = (code: string): Error => Object.assign(new Error(`refused with ${code}`), { code })
const badRow = refused('23514')
const cut = new Error('Connection terminated unexpectedly')

/** A statement that was sent and waits for its answer. */
interface Sent {
  readonly name: string
  readonly seqs: readonly string[]
  /** Answers with the seqs that were written; those asked for, unless told otherwise. */
  answer(seqs?: readonly string[]): Promise<void>
  fail(error: Error): Promise<void>
}

/** Resolves when everything that could run without waiting has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function seqsOf(name: string, [value]: readonly unknown[]): string[] {
  const text = value as string
  if (name === 'delete_acked' || name === 'release_leases') return text.slice(1, -1).split(',')
  return (JSON.parse(text) as { seq: string }[]).map((row) => row.seq)
}

/** A settler over a lane that answers when it is told to. */
function settlerOf(failpoint?: Failpoint) {
  const sent: Sent[] = []
  const log: LogEntry[] = []
  const clock = fakeClock()
  const giveUp = new AbortController()
  /** What `isStuck` was, each time that it was told to look. */
  const told: boolean[] = []
  const run = ({ name, values }: { name: string; values: readonly unknown[] }) =>
    new Promise((resolve, reject) => {
      const seqs = seqsOf(name, values)
      const answer = (written = seqs): Promise<void> => {
        resolve(written.map((seq) => ({ seq })))
        return settled()
      }
      const fail = (failure: Error): Promise<void> => {
        reject(failure)
        return settled()
      }
      sent.push({ name, seqs, answer, fail })
    })
  const settler = createSettler({
    lane: { run } as unknown as Lane,
    names,
    clock,
    log: (entry) => log.push(entry),
    failpoint,
    giveUp: giveUp.signal,
    changed: () => told.push(settler.isStuck),
  })
  const ended: string[] = []
  /** Settles, notes when it is told of the end, and waits until what that leads to has happened. */
  const settle = async (settlements: readonly Settlement[], maxBatch = 1_000): Promise<void> => {
    for (const one of settlements) void settler.settle(one, maxBatch).then(() => ended.push(one.lease.seq))
    await settled()
  }
  const pass = (ms: number): Promise<void> => {
    clock.advance(ms)
    return settled()
  }
  const summary = () => sent.map(({ name, seqs }) => [name, ...seqs])
  return { settler, settle, sent, summary, log, clock, pass, giveUp, told, ended }
}

describe('a flush', () => {
  test('writes together what is settled together, and begins anew when it is over', async () => {
    const { settle, sent, summary } = settlerOf()
    await settle(['1', '2', '3'].map(acked))
    await sent[0]!.answer()
    await settle([acked('4')])

    expect(summary().map((statement) => statement.join())).toEqual(['delete_acked,1,2,3', 'delete_acked,4'])
  })

  test('what comes while one is under way waits for its end, and is written together by the next', async () => {
    const { settler, settle, sent, summary } = settlerOf()
    await settle([acked('1')])
    for (const seq of ['2', '3', '4']) await settle([acked(seq)])
    const [sentDuring, waiting] = [summary(), settler.waiting]
    await sent[0]!.answer()

    expect(sentDuring).toEqual([['delete_acked', '1']])
    expect(waiting).toBe(3)
    expect(summary().slice(1)).toEqual([['delete_acked', '2', '3', '4']])
    expect(settler.waiting).toBe(0)
  })

  test('at most one statement is ever under way', async () => {
    const { settle, sent } = settlerOf()
    const unanswered: number[] = []
    for (let round = 0; round < 5; round++) {
      await settle([acked(`1${round}`), failed(`2${round}`), dead(`3${round}`), unstarted(`4${round}`)])
      unanswered.push(sent.length - round)
      await sent[round]!.answer()
    }

    expect(unanswered).toEqual([1, 1, 1, 1, 1])
  })

  test('is one statement for each kind, deletes first and burials last, each in the order of seq', async () => {
    const { settle, sent, summary } = settlerOf()
    await settle([dead('7'), failed('10'), unstarted('5'), acked('20'), failed('9'), acked('3')])
    for (let index = 0; index < 4; index++) await sent[index]!.answer()

    expect(summary()).toEqual([
      ['delete_acked', '3', '20'],
      ['release_leases', '5'],
      ['reschedule_retried', '9', '10'],
      ['bury_dead', '7'],
    ])
  })

  test('of more than maxBatch is as many statements as it takes; of 1, a statement for each', async () => {
    const { settle, sent, summary } = settlerOf()
    void settle(['1', '2', '3', '4', '5'].map(acked), 2)
    await settle(['6', '7'].map(acked), 1)
    for (let index = 0; index < 5; index++) await sent[index]!.answer()

    expect(summary().map(([, ...seqs]) => seqs)).toEqual([['1', '2'], ['3', '4'], ['5'], ['6'], ['7']])
  })

  test('passes its failpoints in order', async () => {
    const passed: string[] = []
    const { settle, sent } = settlerOf({ reach: async (name) => void passed.push(name) })
    await settle([acked('1')])
    const before = [...passed]
    await sent[0]!.answer()

    expect(before).toEqual(['before_flush', 'flush_sent'])
    expect(passed.slice(2)).toEqual(['after_flush'])
  })
})

describe('settle', () => {
  test('resolves when it is written, and not before', async () => {
    const { settle, sent, ended } = settlerOf()
    await settle([acked('1')])
    await settle([acked('2')])
    const before = [...ended]
    await sent[0]!.answer()
    const between = [...ended]
    await sent[1]!.answer()

    expect([before, between, ended]).toEqual([[], ['1'], ['1', '2']])
  })

  test('does not wait for other statements of its flush: a row that is gone must not be renewed', async () => {
    const { settle, sent, ended } = settlerOf()
    await settle([acked('1'), failed('2')])
    await sent[0]!.answer()

    expect(ended).toEqual(['1'])
  })
})

describe('a row that cannot be written', () => {
  test('is found by halves: it is reported and does not hold the others', async () => {
    const { settle, sent, summary, log, ended, settler } = settlerOf()
    await settle(['1', '2', '3', '4', '5'].map(failed))
    for (let index = 0; index < sent.length; index++) {
      const one = sent[index]!
      await (one.seqs.includes('4') ? one.fail(badRow) : one.answer())
    }

    expect(summary().map(([, ...seqs]) => seqs.join())).toEqual(['1,2,3,4,5', '1,2,3', '4,5', '4', '5'])
    expect(log.filter(({ level }) => level === 'error')).toEqual([
      {
        level: 'error',
        message: expect.stringContaining('cannot be written'),
        fields: { ...fieldsOf('4'), write: 'reschedule' },
        error: badRow,
      },
    ])
    expect(ended.toSorted()).toEqual(['1', '2', '3', '4', '5'])
    expect(settler.settled).toEqual({ acked: 0, retried: 4, buried: 0, released: 0, lost: 0 })
  })

  test('is not waited for: nothing sleeps, and nothing is stuck', async () => {
    const { settle, sent, clock, settler } = settlerOf()
    await settle([acked('1')])
    await sent[0]!.fail(badRow)

    expect(clock.asked).toEqual([])
    expect(settler.isStuck).toBe(false)
  })

  test('after a failure that passed leaves nothing stuck either: the database has answered', async () => {
    const { settle, sent, pass, settler, told } = settlerOf()
    await settle([acked('1')])
    await sent[0]!.fail(refused('40001'))
    await pass(100)
    await sent[1]!.fail(badRow)

    expect(settler.isStuck).toBe(false)
    expect(told.at(-1)).toBe(false)
  })
})

describe('any other failure', () => {
  beforeEach(() => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
  })

  afterEach(() => {
    vi.restoreAllMocks()
  })

  test.each([cut, ...['40001', '40P01', '42P01', '53100', '57014', '57P01', '08006'].map(refused)])(
    'the whole batch is tried again, ever later, until it is written (%s)',
    async (failure) => {
      const { settle, sent, summary, clock, pass, ended } = settlerOf()
      await settle(['1', '2', '3'].map(acked))
      for (let tries = 0; tries < 3; tries++) {
        await sent[tries]!.fail(failure)
        await pass(clock.asked.at(-1)! - 1)
        const early = sent.length
        await pass(1)
        expect([early, sent.length]).toEqual([tries + 1, tries + 2])
      }
      const before = [...ended]
      await sent[3]!.answer()

      expect(summary()).toEqual(Array(4).fill(['delete_acked', '1', '2', '3']))
      expect(clock.asked).toEqual([50, 100, 200])
      expect([before, ended]).toEqual([[], ['1', '2', '3']])
    },
  )

  test('is logged each time, with what it waits for', async () => {
    const { settle, sent, pass, log } = settlerOf()
    await settle(['1', '2'].map(failed))
    await sent[0]!.fail(cut)
    await pass(50)
    await sent[1]!.fail(cut)

    const message = 'settling failed, trying again; nothing is claimed until it works'
    const fields = { write: 'reschedule', messages: 2 }
    expect(log).toEqual([
      { level: 'error', message, fields: { ...fields, delayMs: 50 }, error: cut },
      { level: 'error', message, fields: { ...fields, delayMs: 100 }, error: cut },
    ])
  })

  test('is stuck from the first failure until the next success, and tells of both', async () => {
    const { settle, sent, pass, settler, told } = settlerOf()
    const seen = [settler.isStuck]
    await settle([acked('1')])
    await sent[0]!.fail(cut)
    seen.push(settler.isStuck)
    await pass(50)
    seen.push(settler.isStuck)
    await sent[1]!.answer()
    seen.push(settler.isStuck)

    expect(seen).toEqual([false, true, true, false])
    expect(told).toEqual([true, false])
  })

  test('holds what comes meanwhile; it is written together afterwards', async () => {
    const { settle, sent, summary, pass, settler } = settlerOf()
    await settle([acked('1')])
    await sent[0]!.fail(cut)
    await settle([acked('2')])
    await settle([acked('3')])
    const waiting = settler.waiting
    await pass(50)
    await sent[1]!.answer()

    expect(waiting).toBe(2)
    expect(summary().map(([, ...seqs]) => seqs.join())).toEqual(['1', '1', '2,3'])
  })

  test.each([
    [
      'may have landed, so it is not called a lost lease',
      cut,
      /^settled before the connection broke, or lease lost/,
    ],
    ['was refused, so it was lost', refused('40001'), /^lease lost: the handler outlived it/],
  ])('a retry that finds no row: the try before it %s', async (_title, failure, sentence) => {
    const { settle, sent, pass, log, ended } = settlerOf()
    await settle([acked('1')])
    await sent[0]!.fail(failure)
    await pass(50)
    await sent[1]!.answer([])

    expect(log.slice(1)).toMatchObject([{ level: 'warn', message: expect.stringMatching(sentence) }])
    expect(ended).toEqual(['1'])
  })
})

describe('giving up', () => {
  test('ends the wait: it is tried once more, then each message is reported and let go of', async () => {
    const { settle, sent, log, clock, giveUp, ended } = settlerOf()
    await settle([acked('1'), acked('2'), failed('3')])
    await sent[0]!.fail(cut)
    const before = [...ended]
    giveUp.abort()
    await settled()
    const left = clock.left.length
    await sent[1]!.fail(cut)
    await sent[2]!.fail(cut)

    expect([before, left, sent.length]).toEqual([[], 0, 3])
    expect(ended.toSorted()).toEqual(['1', '2', '3'])
    const message = expect.stringMatching(/^stopped before it could be settled/)
    const entry = { level: 'error', message, error: cut }
    expect(log.slice(1)).toEqual([
      { ...entry, fields: { ...fieldsOf('1'), write: 'delete' } },
      { ...entry, fields: { ...fieldsOf('2'), write: 'delete' } },
      { ...entry, fields: { ...fieldsOf('3'), write: 'reschedule' } },
    ])
  })

  test('loses nothing that can still be written', async () => {
    const { settle, sent, log, giveUp, ended, settler } = settlerOf()
    giveUp.abort()
    await settle([acked('1')])
    await sent[0]!.answer()

    expect([ended, settler.settled.acked, log]).toEqual([['1'], 1, []])
  })
})

describe('what a flush reports', () => {
  test('counts by kind, and what was lost apart', async () => {
    const { settle, sent, settler } = settlerOf()
    await settle([acked('1'), acked('2'), acked('3'), unstarted('4'), failed('5'), dead('6'), dead('7')])
    await sent[0]!.answer(['1', '3'])
    for (let index = 1; index < 4; index++) await sent[index]!.answer()

    expect(settler.settled).toEqual({ acked: 2, released: 1, retried: 1, buried: 2, lost: 1 })
  })

  test.each([
    { settlement: failed('1'), level: 'warn', message: /will be retried$/, more: { delayMs: 5 } },
    { settlement: dead('1'), level: 'error', message: /^message is dead/, more: { reason: 'rejected' } },
  ])('a failure once it is written, with what was thrown itself (case %#)', async (given) => {
    const { settle, sent, log } = settlerOf()
    await settle([given.settlement])
    const before = log.length
    await sent[0]!.answer()

    const fields = { ...fieldsOf('1'), attempt: 2, ...given.more }
    const message = expect.stringMatching(given.message)
    expect([before, log]).toEqual([0, [{ level: given.level, message, fields, error: thrown }]])
    expect(log[0]!.error).toBe(thrown)
  })

  test.each([acked, unstarted])('nothing of what went well (case %#)', async (kind) => {
    const { settle, sent, log } = settlerOf()
    await settle([kind('1')])
    await sent[0]!.answer()

    expect(log).toEqual([])
  })

  test.each([acked, failed, dead, unstarted])('what came too late, and only that (case %#)', async (kind) => {
    const { settle, sent, log } = settlerOf()
    await settle([kind('1')])
    await sent[0]!.answer([])

    const fields = { ...fieldsOf('1'), deliveries: 3, write: kind('1').write }
    const message = expect.stringMatching(/^lease lost: the handler outlived it/)
    expect(log).toEqual([{ level: 'warn', message, fields }])
  })
})
