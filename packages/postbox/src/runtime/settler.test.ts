import { describe, expect, test } from 'vitest'
import type { Executor } from '../adapters/executor.ts'
import type { Lease } from '../core/lease.ts'
import type { LogEntry } from '../core/log.ts'
import type { Settlement } from '../core/settlement.ts'
import { resolveNames } from '../sql/names.ts'
import { createSettler } from './settler.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const token = '0190163d-8694-739b-9aea-966c26f8ad91'

function leaseOf(seq: string): Lease {
  const fixed = { token, id: `id-${seq}`, queue: 'orders', key: null, body: new Uint8Array(0), headers: {} }
  return { ...fixed, seq, attempt: 2, deliveries: 3, createdAt: new Date(0), generation: null }
}

const acked = (seq: string): Settlement => ({ write: 'delete', lease: leaseOf(seq) })
const thrown = new TypeError('bad')
const failed = (seq: string): Settlement => ({
  write: 'reschedule',
  lease: leaseOf(seq),
  delayMs: 5.4,
  error: 'TypeError: bad',
  thrown,
})

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
  if (name === 'delete_acked') return text.slice(1, -1).split(',')
  return (JSON.parse(text) as { seq: string }[]).map((row) => row.seq)
}

/** A settler over a database that answers when it is told to. */
function settlerOf() {
  const sent: Sent[] = []
  const log: LogEntry[] = []
  const executor = {
    run: ({ name, values }: { name: string; values: readonly unknown[] }) =>
      new Promise((resolve, reject) => {
        const seqs = seqsOf(name, values)
        const answer = (written = seqs): Promise<void> => {
          resolve(written.map((seq) => ({ seq })))
          return settled()
        }
        const fail = (error: Error): Promise<void> => {
          reject(error)
          return settled()
        }
        sent.push({ name, seqs, answer, fail })
      }),
  } as unknown as Executor
  return { settler: createSettler(executor, names, (entry) => log.push(entry)), sent, log }
}

const summaryOf = (sent: readonly Sent[]) => sent.map(({ name, seqs }) => [name, ...seqs])

describe('createSettler', () => {
  test('what is settled together is written together', async () => {
    const { settler, sent } = settlerOf()
    const all = Promise.all(['1', '2', '3'].map((seq) => settler.settle(acked(seq))))
    await settled()
    await sent[0]!.answer()
    await all

    expect(summaryOf(sent)).toEqual([['delete_acked', '1', '2', '3']])
  })

  test('what comes while a flush is under way waits for its end, and is written together by the next', async () => {
    const { settler, sent } = settlerOf()
    const first = settler.settle(acked('1'))
    await settled()
    const rest: Promise<void>[] = []
    for (const seq of ['2', '3', '4']) {
      rest.push(settler.settle(acked(seq)))
      await settled()
    }
    const sentDuring = summaryOf(sent)
    await sent[0]!.answer()
    await first
    await sent[1]!.answer()
    await Promise.all(rest)

    expect(sentDuring).toEqual([['delete_acked', '1']])
    expect(summaryOf(sent)).toEqual([
      ['delete_acked', '1'],
      ['delete_acked', '2', '3', '4'],
    ])
  })

  test('a settlement resolves when it is written, and not before', async () => {
    const { settler, sent } = settlerOf()
    const ended: string[] = []
    const settle = (seq: string): Promise<unknown> => settler.settle(acked(seq)).then(() => ended.push(seq))
    const first = settle('1')
    await settled()
    const second = settle('2')
    const before = [...ended]
    await sent[0]!.answer()
    const between = [...ended]
    await sent[1]!.answer()
    await Promise.all([first, second])

    expect([before, between, ended]).toEqual([[], ['1'], ['1', '2']])
  })

  test('a flush that fails rejects those that were in it, and the next one works', async () => {
    const { settler, sent } = settlerOf()
    const lost = new Error('connection lost')
    const inFirst = Promise.allSettled([settler.settle(acked('1')), settler.settle(acked('2'))])
    await settled()
    const inSecond = Promise.allSettled([settler.settle(acked('3'))])
    await sent[0]!.fail(lost)
    await sent[1]!.answer()
    const later = settler.settle(acked('4'))
    await settled()
    await sent[2]!.answer()

    expect(await inFirst).toEqual([
      { status: 'rejected', reason: lost },
      { status: 'rejected', reason: lost },
    ])
    expect(await inSecond).toEqual([{ status: 'fulfilled', value: undefined }])
    await expect(later).resolves.toBeUndefined()
    expect(summaryOf(sent).map(([, ...seqs]) => seqs)).toEqual([['1', '2'], ['3'], ['4']])
  })

  test('a flush of both kinds is one statement for each, one after the other, and one flush', async () => {
    const { settler, sent } = settlerOf()
    const mixed = Promise.all([failed('1'), acked('2'), failed('3'), acked('4')].map(settler.settle))
    await settled()
    const sentFirst = summaryOf(sent)
    const next = settler.settle(acked('5'))
    await sent[0]!.answer()
    const sentSecond = summaryOf(sent).slice(1)
    await sent[1]!.answer()
    await mixed
    await sent[2]!.answer()
    await next

    expect(sentFirst).toEqual([['delete_acked', '2', '4']])
    expect(sentSecond).toEqual([['reschedule_retried', '1', '3']])
    expect(summaryOf(sent).slice(2)).toEqual([['delete_acked', '5']])
  })

  test('at most one statement is ever under way', async () => {
    const { settler, sent } = settlerOf()
    const all: Promise<void>[] = []
    const unanswered: number[] = []
    for (let round = 0; round < 5; round++) {
      all.push(settler.settle(acked(`${round}`)), settler.settle(failed(`1${round}`)))
      await settled()
      unanswered.push(sent.length - round)
      await sent[round]!.answer()
    }
    for (let index = 5; index < sent.length; index++) await sent[index]!.answer()
    await Promise.all(all)

    expect(unanswered).toEqual([1, 1, 1, 1, 1])
  })
})

describe('what a flush reports', () => {
  test('a failure that was written, with what was thrown itself', async () => {
    const { settler, sent, log } = settlerOf()
    const settling = settler.settle(failed('1'))
    await settled()
    const before = log.length
    await sent[0]!.answer()
    await settling

    expect(before).toBe(0)
    expect(log).toMatchObject([
      {
        level: 'warn',
        message: expect.stringContaining('will be retried'),
        fields: { seq: '1', delayMs: 5 },
      },
    ])
    expect(log[0]!.error).toBe(thrown)
  })

  test.each([
    ['an acknowledgement', acked, 'delete'],
    ['a failure', failed, 'reschedule'],
  ])('%s that came too late, and only that it did', async (_title, settlementOf, write) => {
    const { settler, sent, log } = settlerOf()
    const settling = Promise.all([settler.settle(settlementOf('1'))])
    await settled()
    await sent[0]!.answer([])
    await settling

    expect(log).toMatchObject([
      { level: 'warn', message: expect.stringContaining('lease lost'), fields: { seq: '1', write } },
    ])
  })

  test('nothing when the write fails: its caller hears of it', async () => {
    const { settler, sent, log } = settlerOf()
    const settling = settler.settle(failed('1'))
    const rejected = expect(settling).rejects.toThrow('lost')
    await settled()
    await sent[0]!.fail(new Error('lost'))
    await rejected

    expect(log).toEqual([])
  })
})
