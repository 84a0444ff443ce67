import type { Executor } from '../../adapters/executor.ts'
import { sqlState } from '../../core/sql-state.ts'
import type { Statement } from '../../sql/statement.ts'
import { type Claim, isFree, lease } from './claiming.ts'
import type {
  Arrival,
  MemoryDatabase,
  MemoryDatabaseParts,
  MemoryMessage,
  MemoryTransaction,
} from './memory-database.ts'
import { inOrder } from './ordering.ts'
import { isPaused } from './pausing.ts'
import { atOnce, patiently, perform } from './performing.ts'
import { copyOf, microseconds } from './rows.ts'
import {
  commit,
  createServer,
  createTransaction,
  databaseError,
  fail,
  messageOf,
  putMessage,
  release,
  type Transaction,
} from './transaction.ts'
import { allDeadLetters, allDelivered, allMessages } from './visible.ts'
import { createHearings } from './waking.ts'

export function createMemoryDatabase(parts: MemoryDatabaseParts): MemoryDatabase {
  const server = createServer()
  const hearings = createHearings()
  const now = (): number => microseconds(parts.now())
  const conclude = (tx: Transaction): void => {
    commit(tx)
    hearings.tell(tx)
    tellArrivals(tx, parts)
  }
  /** In a transaction of its own. */
  const alone = <T>(work: (tx: Transaction) => T): T => {
    const tx = createTransaction(server, now())
    try {
      const result = work(tx)
      conclude(tx)
      return result
    } finally {
      release(tx)
    }
  }
  const runAlone = <Row>(statement: Statement<Row>, seen: unknown): readonly Row[] =>
    alone((tx) => perform(statement, { tx, at: tx.startedAt, seen }))
  const begin = (): MemoryTransaction => lasting(createTransaction(server, now()), { now, conclude })
  const run: Executor['run'] = (statement) => patiently(null, statement, (seen) => runAlone(statement, seen))
  return {
    singleSession: true,
    capacity: null,
    run,
    runNow: (statement) => atOnce(() => runAlone(statement, null)),
    begin,
    async transaction(work) {
      const tx = begin()
      try {
        const result = await work(tx, tx)
        tx.commit()
        return result
      } finally {
        tx.rollback()
      }
    },
    listen: async (channels, hearing) => hearings.listen(channels, hearing, { run }),
    lease: (seqs, claim) => alone((tx) => leaseAll(tx, seqs, claim)),
    alter: (seq, changes) =>
      atOnce(() =>
        alone((tx) => {
          const message = messageOf(tx, seq)
          if (message !== undefined) putMessage(tx, { ...message, ...changes })
        }),
      ),
    get nextEnd() {
      return server.nextEnd.signal
    },
    get messages() {
      return alone(allMessages).map(copyOf)
    },
    get free() {
      return alone((tx) => allMessages(tx).filter((message) => isLeasable(tx, message))).map(copyOf)
    },
    firstOf: (queue, key) => {
      const first = alone((tx) => inOrder(tx, queue, key))[0]
      return first === undefined ? null : copyOf(first)
    },
    get deadLetters() {
      return alone(allDeadLetters)
        .sort((a, b) => a.deadSeq - b.deadSeq)
        .map(copyOf)
    },
    get deliveredMessages() {
      return alone(allDelivered)
        .sort((a, b) => a.deliveredSeq - b.deliveredSeq)
        .map(copyOf)
    },
  }
}

interface LastingParts {
  now(): number
  /** Commits it, and tells whoever is to hear of it. */
  conclude(tx: Transaction): void
}

/** A transaction that lasts until it is told to end. */
function lasting(tx: Transaction, { now, conclude }: LastingParts): MemoryTransaction {
  return {
    get isOpen() {
      return tx.state !== 'ended'
    },
    async run(statement) {
      try {
        return await patiently(tx, statement, (seen) => {
          assertUsable(tx)
          return perform(statement, { tx, at: now(), seen })
        })
      } catch (error) {
        fail(tx)
        throw error
      }
    },
    commit() {
      if (tx.state === 'ended') throw hasEnded()
      if (tx.state === 'open') conclude(tx)
      release(tx)
    },
    rollback: () => release(tx),
  }
}

function assertUsable({ state }: Transaction): void {
  if (state === 'ended') throw hasEnded()
  if (state === 'open') return
  throw databaseError(sqlState.failedTransaction, 'a statement of this transaction has failed: roll it back')
}

function hasEnded(): Error {
  return new Error('this transaction has ended')
}

function leaseAll(
  tx: Transaction,
  seqs: readonly number[],
  claim: Claim,
): ReturnType<MemoryDatabase['lease']> {
  return seqs
    .map((seq) => messageOf(tx, seq))
    .filter((message) => message !== undefined)
    .filter((message) => isLeasable(tx, message))
    .map((message) => ({ ...lease(tx, withKey(message), claim), afterdead: message.afterDead }))
}

/** Whoever runs it before it is due runs it as it will be then. */
function withKey(message: MemoryMessage): MemoryMessage {
  return message.laterKey === null ? message : { ...message, key: message.laterKey, laterKey: null }
}

function isLeasable(tx: Transaction, message: MemoryMessage): boolean {
  return message.failedAt === null && isFree(tx, message) && !isPaused(tx, message.queue)
}

const arrivalKinds: readonly Arrival[] = ['publish', 'follow-on', 'replay', 'resume']

function tellArrivals({ arrivals, server }: Transaction, { arrived }: MemoryDatabaseParts): void {
  if (arrived === undefined || arrivals.size === 0) return
  for (const kind of arrivalKinds) {
    const messages = [...arrivals]
      .filter(([, arrival]) => arrival === kind)
      .flatMap(([seq]) => server.tables.messages.get(seq) ?? [])
      .sort((a, b) => a.seq - b.seq)
      .map(copyOf)
    if (messages.length > 0) arrived(messages, kind)
  }
}
