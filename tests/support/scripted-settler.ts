// A settler over a lane that answers when it is told to.
import type { Settlement } from '../../packages/postbox/src/core/settlement.ts'
import type { DeadLetterStorage, DeliveredStorage } from '../../packages/postbox/src/core/storage-modes.ts'
import type { Failpoint } from '../../packages/postbox/src/runtime/failpoint.ts'
import type { Lane } from '../../packages/postbox/src/runtime/lane.ts'
import { createSettler } from '../../packages/postbox/src/runtime/settler.ts'
import type { Written } from '../../packages/postbox/src/runtime/settling.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { fakeClock } from './fake-clock.ts'
import { recordedEvents } from './recorded-events.ts'

export const names = resolveNames({ schema: 'public', table: 'outbox' })

/** A statement that was sent and waits for its answer. */
export interface Sent {
  readonly name: string
  readonly text: string
  readonly seqs: readonly string[]
  /** Timers take their names back by it. */
  readonly isNamed: boolean
  /** Answers with the seqs that were written; those asked for, unless told otherwise. */
  answer(seqs?: readonly string[]): Promise<void>
  fail(error: Error): Promise<void>
}

export interface Scripted {
  readonly failpoint?: Failpoint
  readonly deadLetters?: DeadLetterStorage
  readonly delivered?: DeliveredStorage
  /** False: nobody takes events that are not logged. */
  readonly isHeard?: boolean
}

/** Resolves when everything that could run without waiting has run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export const refusal = (code: string): Error => Object.assign(new Error(`refused with ${code}`), { code })
export const badRow = refusal('23514')
export const cut = new Error('Connection terminated unexpectedly')

export function scriptedSettler(given: Scripted = {}) {
  const { failpoint, deadLetters = 'table', delivered = 'delete', isHeard = true } = given
  const { lane, sent } = scriptedLane()
  const { teller, told } = recordedEvents({ isHeard })
  const clock = fakeClock()
  const giveUp = new AbortController()
  /** What `isStuck` was, each time that it was told to look. */
  const looks: boolean[] = []
  const settler = createSettler({
    lane,
    names,
    clock,
    teller,
    wake: 'poll',
    deadLetters,
    delivered,
    failpoint,
    giveUp: giveUp.signal,
    changed: () => looks.push(settler.isStuck),
  })
  const ended: string[] = []
  const written: Record<string, Written> = {}
  /** Settles, notes when it is told of the end, and waits until what that leads to has happened. */
  const settle = async (settlements: readonly Settlement[], maxBatch = 1_000): Promise<void> => {
    for (const one of settlements)
      settler.settle(one, { maxBatch, durationMs: 12 }, (end) => {
        ended.push(one.lease.seq)
        written[one.lease.seq] = end
      })
    await settled()
  }
  const pass = (ms: number): Promise<void> => {
    clock.advance(ms)
    return settled()
  }
  /** Answers every statement, in turn, those that come of it included; with an error where one is given. */
  const answerAll = async (errorOf: (statement: Sent) => Error | null = () => null): Promise<void> => {
    for (let one = sent.find(isOpen); one !== undefined; one = sent.find(isOpen)) {
      const error = errorOf(one)
      await (error === null ? one.answer() : one.fail(error))
    }
  }
  /** Each statement as its name and its seqs. */
  const summary = () => sent.map(({ name, seqs }) => [name, ...seqs].join(' '))
  return { settler, settle, sent, summary, answerAll, told, clock, pass, giveUp, looks, ended, written }
}

const answered = new WeakSet<Sent>()
export const isOpen = (one: Sent): boolean => !answered.has(one)

function scriptedLane() {
  const sent: Sent[] = []
  const run = (statement: Statement<{ readonly seq: string }>) =>
    new Promise<readonly { readonly seq: string }[]>((resolve, reject) => {
      const seqs = seqsOf(statement)
      const end = (how: () => void): Promise<void> => {
        answered.add(one)
        how()
        return settled()
      }
      const one: Sent = {
        name: statement.name,
        text: statement.text,
        seqs,
        isNamed: statement.text.includes('(timer_id, fired_timer_id) ='),
        answer: (written = seqs) => end(() => resolve(written.map((seq) => ({ seq })))),
        fail: (error) => end(() => reject(error)),
      }
      sent.push(one)
    })
  return { lane: { run } as unknown as Pick<Lane, 'run'>, sent }
}

function seqsOf({ values: [value] }: Statement<unknown>): string[] {
  const text = value as string
  if (text.startsWith('{')) return text.slice(1, -1).split(',')
  return (JSON.parse(text) as { seq: string }[]).map((row) => row.seq)
}
