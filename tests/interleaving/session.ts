// A session: a connection of its own, what it has in hand, and the step that it is at.
import type pg from 'pg'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { tokenOf } from './books.ts'
import { replaceOnce } from './replace-once.ts'
import type { Finished, Lease, Session, Step, Told } from './terms.ts'

/** A change of a statement's text: how a twin is broken. */
export type Rewrite = (statement: Statement<unknown>) => string

/** What sessions share: the hour, how statements are changed, and what each process has in hand. */
export interface World {
  hours: number
  rewrite: Rewrite
  /** Sessions that are another one's process, and have the same hand. */
  lanes: Readonly<Record<string, string>>
  readonly hands: Map<string, readonly Lease[]>
}

export interface DrivenSession {
  readonly letter: string
  readonly pid: number
  readonly isInTransaction: boolean
  /** The step that was begun and has not come to its end. */
  readonly running: Step | null
  /** It was seen to wait for a lock. */
  markWaited(): void
  /** Resolves when the step that runs is over. */
  readonly over: Promise<void>
  /** Who is told of steps that come to their end. */
  hear(finished: (one: Finished) => void): void
  start(step: Step, wasAlone: boolean): void
  rollBack(): Promise<void>
  /** As it was before its first step. */
  forget(): void
}

interface Memory {
  /** What a rollback takes out of its hand again, and puts back. */
  taken: readonly Lease[]
  left: readonly Lease[]
  handled: Lease | null
  isInTransaction: boolean
  /** Its transaction has failed; until its end there is nothing to do. */
  isAborted: boolean
  claims: number
  running: Step | null
  waited: boolean
  recalled: ReadonlyMap<string, unknown>
}

const blank: Memory = {
  taken: [],
  left: [],
  handled: null,
  isInTransaction: false,
  isAborted: false,
  claims: 0,
  running: null,
  waited: false,
  recalled: new Map(),
}

interface Parts {
  readonly client: pg.Client
  readonly pid: number
  readonly letter: string
  readonly names: Names
  readonly world: World
}

export function createSession(parts: Parts): DrivenSession {
  const { client, pid, letter, world } = parts
  const memory: Memory = { ...blank }
  const session = sessionOf(parts, memory)
  let hours = 0
  let over = Promise.resolve()
  let heard: (one: Finished) => void = () => {}
  // Time stands still within a transaction, as it does in Postgres.
  const setHour = async (): Promise<void> => {
    if (memory.isInTransaction || hours === world.hours) return
    hours = world.hours
    await client.query(`set interleaving.hours = ${hours}`)
  }
  const perform = async (step: Step): Promise<readonly Told[]> => {
    if (memory.isAborted) {
      if (step.label === 'commit' || step.label === 'rollback') memory.isAborted = false
      return []
    }
    try {
      await setHour()
      return await step.perform(session)
    } catch (error) {
      const told = await failed(error, memory, session)
      // The error is sent before the transaction is given up: its locks are there until the server is ready again.
      await client.query('select')
      return told
    }
  }
  return {
    letter,
    pid,
    get isInTransaction() {
      return memory.isInTransaction
    },
    get running() {
      return memory.running
    },
    markWaited() {
      memory.waited = true
    },
    get over() {
      return over
    },
    hear(finished) {
      heard = finished
    },
    start(step, wasAlone) {
      Object.assign(memory, { running: step, waited: false })
      over = perform(step).then((told) => {
        // Whoever gave up has waited, whether it was seen or not.
        const waited = memory.waited || told.some((one) => one.kind === 'failed' && one.sqlState === '55P03')
        memory.running = null
        heard({ letter, step, told, waited, wasAlone: wasAlone && !waited })
      })
    },
    async rollBack() {
      if (memory.isInTransaction) await session.end('rollback')
    },
    forget() {
      Object.assign(memory, blank)
    },
  }
}

async function failed(error: unknown, memory: Memory, session: Session): Promise<readonly Told[]> {
  const { code, message } = error as { readonly code?: unknown; readonly message: string }
  const told: Told = { kind: 'failed', sqlState: typeof code === 'string' ? code : 'none', message }
  if (!memory.isInTransaction) return [told]
  memory.isAborted = memory.handled === null
  return [told, await session.end('rollback')]
}

function sessionOf({ client, letter, names, world }: Parts, memory: Memory): Session {
  const hand = (): readonly Lease[] => world.hands.get(world.lanes[letter] ?? letter) ?? []
  const change = (out: readonly Lease[], into: readonly Lease[]): void => {
    const kept = hand().filter((lease) => !out.includes(lease))
    world.hands.set(world.lanes[letter] ?? letter, [...kept, ...into])
  }
  return {
    letter,
    names,
    get hand() {
      return hand()
    },
    get isInTransaction() {
      return memory.isInTransaction
    },
    get handled() {
      return memory.handled
    },
    newToken: () => tokenOf(letter, ++memory.claims),
    async run<Row>(statement: Statement<Row>) {
      const text = withPatience(world.rewrite(statement), memory.running?.givesUp === true)
      const { rows } = await client.query(text, [...statement.values])
      return rows as Row[]
    },
    async work(text, values) {
      await client.query(text, [...values])
    },
    async begin() {
      await client.query('begin')
      Object.assign(memory, { isInTransaction: true, taken: [], left: [] })
      return { kind: 'began' }
    },
    async end(how) {
      await client.query(how)
      Object.assign(memory, { isInTransaction: false, handled: null })
      if (how === 'rollback') change(memory.taken, memory.left)
      return { kind: how === 'commit' ? 'committed' : 'rolled back' }
    },
    takeInHand(leases) {
      memory.taken = [...memory.taken, ...leases]
      change([], leases)
    },
    letGo(leases) {
      memory.left = [...memory.left, ...leases]
      change(leases, [])
    },
    handle(lease) {
      memory.handled = lease
    },
    passHour() {
      world.hours++
    },
    recall<T>(what: string, make: () => T) {
      if (!memory.recalled.has(what)) memory.recalled = new Map([...memory.recalled, [what, make()]])
      return memory.recalled.get(what) as T
    },
  }
}

/** A hundred milliseconds would make the clock on the wall decide: here, who waits for a name waits until he gets it, or not at all. */
function withPatience(text: string, givesUp: boolean): string {
  if (!text.includes(`'lock_timeout', '`)) return text
  return replaceOnce(text, `'lock_timeout', '100ms'`, `'lock_timeout', '${givesUp ? '1ms' : '0'}'`)
}
