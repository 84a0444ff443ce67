import { sqlState } from '../../core/sql-state.ts'
import type { Arrival } from './memory-database.ts'
import type {
  MemoryDeadLetter,
  MemoryDelivered,
  MemoryMessage,
  MemoryOperation,
  MemoryQueue,
} from './rows.ts'
import { createTables, nameHeldBy, type Tables } from './tables.ts'

/** What all transactions share. */
export interface Server {
  readonly tables: Tables
  /** Who has written a message, a dead letter, the name of a timer, an operation or a queue, and has not ended. */
  readonly locks: {
    readonly messages: Map<number, Transaction>
    readonly dead: Map<number, Transaction>
    readonly delivered: Map<number, Transaction>
    readonly timers: Map<string, Transaction>
    /** Advisory ones: nothing has to be written. */
    readonly handled: Map<string, Transaction>
    readonly keys: Map<string, Transaction>
    readonly operations: Map<string, Transaction>
    readonly queues: Map<string, Transaction>
  }
  /** Queues that somebody has written down to be in the order of their keys. */
  readonly ordered: Set<string>
  /** Aborts when a transaction ends that had messages in hand; then there is another. */
  nextEnd: AbortController
  /** Those that have an xid and have not ended. */
  readonly running: Set<number>
  /** The last ones that were given out. They do not come back when a transaction does not commit. */
  xid: number
  seq: number
  deadSeq: number
  deliveredSeq: number
}

/** What one transaction has written, and nobody else sees yet. A statement on its own is one, too. null: deleted. */
export interface Transaction {
  readonly server: Server
  /** Postgres' now(). */
  readonly startedAt: number
  readonly messages: Map<number, MemoryMessage | null>
  readonly dead: Map<number, MemoryDeadLetter | null>
  readonly delivered: Map<number, MemoryDelivered | null>
  readonly timers: Map<string, number>
  readonly handled: Map<string, number | null>
  /** Messages that it alone may mark as handled, until it ends. */
  readonly handling: Set<string>
  /** Keys of ordered queues that it alone may publish to, until it ends. */
  readonly keys: Set<string>
  readonly operations: Map<string, MemoryOperation | null>
  readonly queues: Map<string, MemoryQueue>
  readonly arrivals: Map<number, Arrival>
  /** Queues whose subscribers are told when it commits, and channels on which a word is sent. */
  readonly toldQueues: Set<string>
  readonly toldChannels: Set<string>
  xid: number | null
  mark: unknown
  state: 'open' | 'failed' | 'ended'
  /** The last one that it waited for. */
  waitsFor: Transaction | null
  /** Whoever waits for its end. */
  readonly waiters: (() => void)[]
}

export function createServer(): Server {
  const locks = {
    messages: new Map(),
    dead: new Map(),
    delivered: new Map(),
    timers: new Map(),
    handled: new Map(),
    keys: new Map(),
    operations: new Map(),
    queues: new Map(),
  }
  const nextEnd = new AbortController()
  const sequences = { xid: 0, seq: 0, deadSeq: 0, deliveredSeq: 0 }
  return { tables: createTables(), locks, ordered: new Set(), nextEnd, running: new Set(), ...sequences }
}

export function createTransaction(server: Server, startedAt: number): Transaction {
  return {
    server,
    startedAt,
    messages: new Map(),
    dead: new Map(),
    delivered: new Map(),
    timers: new Map(),
    handled: new Map(),
    handling: new Set(),
    keys: new Set(),
    operations: new Map(),
    queues: new Map(),
    arrivals: new Map(),
    toldQueues: new Set(),
    toldChannels: new Set(),
    xid: null,
    mark: null,
    state: 'open',
    waitsFor: null,
    waiters: [],
  }
}

/** A statement has to wait until another transaction ends. Thrown before it has written anything. */
export class Blocked extends Error {
  readonly by: Transaction
  /** What it had seen before: after the wait it goes on from there. */
  readonly seen: unknown

  constructor(by: Transaction, seen: unknown = null) {
    super('another transaction has it')
    this.by = by
    this.seen = seen
  }
}

/** An error as Postgres gives them. */
export function databaseError(code: string, sentence: string): Error {
  return Object.assign(new Error(sentence), { code })
}

/** Given when something is first written. */
export function xidOf(tx: Transaction): number {
  if (tx.xid !== null) return tx.xid
  const xid = ++tx.server.xid
  tx.xid = xid
  tx.server.running.add(xid)
  return xid
}

/** The text of pg_current_snapshot(): its own transaction has not ended either, but is not listed. */
export function snapshotText({ server, xid: own }: Transaction): string {
  const running = [...server.running].sort((a, b) => a - b)
  const end = server.xid + 1
  return `${running[0] ?? end}:${end}:${running.filter((xid) => xid !== own).join(',')}`
}

/** Throws when somebody else has written the row. */
export function awaitMessage(tx: Transaction, seq: number, seen?: unknown): void {
  const owner = tx.server.locks.messages.get(seq)
  if (owner !== undefined && owner !== tx) throw new Blocked(owner, seen)
}

export function awaitDeadLetter(tx: Transaction, deadSeq: number, seen: unknown): void {
  const owner = tx.server.locks.dead.get(deadSeq)
  if (owner !== undefined && owner !== tx) throw new Blocked(owner, seen)
}

/** Throws when somebody else is about to take the name, or to give it up. */
export function awaitTimer(tx: Transaction, name: string, seen?: unknown): void {
  const owner = tx.server.locks.timers.get(name)
  if (owner !== undefined && owner !== tx) throw new Blocked(owner, seen)
  const holder = tx.server.tables.timers.get(name)
  if (holder !== undefined) awaitMessage(tx, holder, seen)
}

/** Throws when somebody else has published to one of the keys; else nobody else may, until this ends. */
export function takeKeys(tx: Transaction, keys: readonly string[], seen?: unknown): void {
  for (const key of keys) {
    const owner = tx.server.locks.keys.get(key)
    if (owner !== undefined && owner !== tx) throw new Blocked(owner, seen)
  }
  for (const key of keys) {
    tx.server.locks.keys.set(key, tx)
    tx.keys.add(key)
  }
}

/** Writes a message, new or not. */
export function putMessage(tx: Transaction, message: MemoryMessage): void {
  const { seq } = message
  awaitMessage(tx, seq)
  const name = nameHeldBy(message)
  if (name !== null) takeName(tx, name, seq)
  xidOf(tx)
  tx.server.locks.messages.set(seq, tx)
  tx.messages.set(seq, message)
}

function takeName(tx: Transaction, name: string, seq: number): void {
  awaitTimer(tx, name)
  const holder = tx.timers.get(name) ?? tx.server.tables.timers.get(name)
  const held = holder === undefined || holder === seq ? undefined : messageOf(tx, holder)
  if (nameHeldBy(held) === name) {
    throw databaseError(sqlState.uniqueViolation, `another timer has the name: ${name.replace('\0', ' ')}`)
  }
  tx.server.locks.timers.set(name, tx)
  tx.timers.set(name, seq)
}

export function removeMessage(tx: Transaction, seq: number): void {
  awaitMessage(tx, seq)
  xidOf(tx)
  tx.server.locks.messages.set(seq, tx)
  tx.messages.set(seq, null)
}

/** null: deleted. */
export function putDeadLetter(tx: Transaction, deadSeq: number, letter: MemoryDeadLetter | null): void {
  xidOf(tx)
  tx.server.locks.dead.set(deadSeq, tx)
  tx.dead.set(deadSeq, letter)
}

/** Throws when somebody else goes on with it. null: deleted. */
export function putOperation(tx: Transaction, id: string, operation: MemoryOperation | null): void {
  const owner = tx.server.locks.operations.get(id)
  if (owner !== undefined && owner !== tx) throw new Blocked(owner)
  xidOf(tx)
  tx.server.locks.operations.set(id, tx)
  tx.operations.set(id, operation)
}

/** null: deleted. */
export function putDelivered(tx: Transaction, deliveredSeq: number, row: MemoryDelivered | null): void {
  xidOf(tx)
  tx.server.locks.delivered.set(deliveredSeq, tx)
  tx.delivered.set(deliveredSeq, row)
}

/** A message as this transaction sees it. */
export function messageOf(tx: Transaction, seq: number): MemoryMessage | undefined {
  const own = tx.messages.get(seq)
  return own === undefined ? tx.server.tables.messages.get(seq) : (own ?? undefined)
}

/** Makes everybody see it. */
export function commit(tx: Transaction): void {
  const { tables } = tx.server
  for (const [seq, message] of tx.messages) {
    if (message === null) tables.remove(seq)
    else tables.put(message)
  }
  for (const [deadSeq, letter] of tx.dead) {
    if (letter === null) tables.dead.delete(deadSeq)
    else tables.dead.set(deadSeq, letter)
  }
  for (const [key, handledAt] of tx.handled) {
    if (handledAt === null) tables.handled.delete(key)
    else tables.handled.set(key, handledAt)
  }
  for (const [id, operation] of tx.operations) {
    if (operation === null) tables.operations.delete(id)
    else tables.operations.set(id, operation)
  }
  for (const [deliveredSeq, row] of tx.delivered) {
    if (row === null) tables.delivered.delete(deliveredSeq)
    else tables.delivered.set(deliveredSeq, row)
  }
  for (const [name, queue] of tx.queues) tables.queues.set(name, queue)
  release(tx)
}

/** Ends it, unless it has ended: what it has not committed is gone. */
export function release(tx: Transaction): void {
  if (tx.state === 'ended') return
  tx.state = 'ended'
  letGo(tx)
}

/** A statement of it has failed: it can only be rolled back, and nobody waits for that. */
export function fail(tx: Transaction): void {
  if (tx.state !== 'open') return
  tx.state = 'failed'
  letGo(tx)
}

function letGo(tx: Transaction): void {
  const { locks, running } = tx.server
  for (const seq of tx.messages.keys()) locks.messages.delete(seq)
  for (const deadSeq of tx.dead.keys()) locks.dead.delete(deadSeq)
  for (const deliveredSeq of tx.delivered.keys()) locks.delivered.delete(deliveredSeq)
  for (const name of tx.timers.keys()) locks.timers.delete(name)
  for (const key of tx.handling) locks.handled.delete(key)
  for (const key of tx.keys) locks.keys.delete(key)
  for (const id of tx.operations.keys()) locks.operations.delete(id)
  for (const name of tx.queues.keys()) locks.queues.delete(name)
  if (tx.xid !== null) running.delete(tx.xid)
  const { messages, dead, delivered, timers, handled, operations, queues } = tx
  for (const written of [messages, dead, delivered, timers, handled, operations, queues]) written.clear()
  for (const goOn of tx.waiters.splice(0)) goOn()
  if (tx.handling.size > 0) tellEnd(tx.server)
}

function tellEnd(server: Server): void {
  const { nextEnd } = server
  server.nextEnd = new AbortController()
  nextEnd.abort()
}
