// Leases in hand, and statements about them that wait for their answers.
import { type Held, heldOf } from '../../packages/postbox/src/runtime/held.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'

/** Resolves when everything that could run without waiting has run. */
export const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A lease in hand, and why its handler was told to give up. */
export type Watched = Held & { reason?: unknown }

/** A lease of 8 seconds, unless told otherwise, that was sent for at that time. */
export function leased(seq: number, sentAt = 0, leaseMs = 8_000): Watched {
  const fixed = { token: `token-${seq}`, id: `id-${seq}`, seq: `${seq}`, queue: 'orders', key: null }
  const content = { body: new Uint8Array(0), headers: {}, attempt: 1, deliveries: 3, generation: null }
  const times = { timerId: null, createdAt: new Date(0), firstAttemptAt: null, claimedAt: new Date(0) }
  const held: Watched = heldOf({ ...fixed, ...content, ...times }, leaseMs, sentAt)
  held.abort = (reason) => {
    held.reason ??= reason
  }
  return held
}

/** A statement that waits for its answer. */
export interface Sent {
  readonly name: string
  readonly seqs: readonly string[]
  readonly values: readonly unknown[]
  /** Answers with these seqs. */
  answer(...seqs: number[]): Promise<void>
  fail(error: Error): Promise<void>
}

/** Notes each statement, and answers when it is told to. */
export function answering(sent: Sent[]) {
  return ({ name, values }: Statement<unknown>): Promise<never> =>
    new Promise((resolve, reject) => {
      const answer = (...seqs: number[]): Promise<void> => {
        resolve(seqs.map((seq) => ({ seq: `${seq}` })) as never)
        return idle()
      }
      const fail = (error: Error): Promise<void> => {
        reject(error)
        return idle()
      }
      sent.push({ name, seqs: seqsOf(values), values, answer, fail })
    })
}

export const summaryOf = (sent: readonly Sent[]) => sent.map(({ name, seqs }) => [name, ...seqs])

function seqsOf([value]: readonly unknown[]): readonly string[] {
  const text = value as string
  if (text.startsWith('{')) return text.slice(1, -1).split(',')
  return (JSON.parse(text) as { seq: string }[]).map(({ seq }) => seq)
}
