import type { Database } from '../adapters/executor.ts'
import type { Statement } from '../sql/statement.ts'
import { derived } from './derived.ts'
import { createMemoryDatabase } from './memory/create-memory-database.ts'
import type { Arrival, MemoryDatabase, MemoryMessage } from './memory/memory-database.ts'
import type { TestClock } from './test-clock.ts'
import { testTransaction } from './test-transaction.ts'

/** The memory store of a test, and what came of each piece of work on it. */
export interface TestStore {
  readonly memory: MemoryDatabase
  /** The same for one call of the outbox: what it makes visible is delivered before it returns, where that is the mode. */
  database(): Database
  /** For the transactions of handlers, whose follow-ons are delivered once they have ended. */
  readonly opener: Pick<Database, 'transaction'>
  /** All that was ever published, and is not rolled back. */
  readonly published: readonly MemoryMessage[]
  /** Does something that may commit, and gives what became visible by it. */
  during<T>(work: () => T): { readonly value: T; readonly arrived: readonly MemoryMessage[] }
  /** Runs a statement of nobody's: what it makes visible is neither published nor delivered by anybody but the loops. */
  feed<Row>(statement: Statement<Row>): Promise<readonly Row[]>
  /** Statements so far: a sign of life. */
  readonly statements: number
}

export interface TestStoreParts {
  readonly clock: TestClock
  /** Delivers what a publisher made visible, before he goes on. */
  deliver(messages: readonly MemoryMessage[]): Promise<void>
  /** Something became visible that no publisher waits for. */
  arrived(messages: readonly MemoryMessage[]): void
}

export function createTestStore({ clock, deliver, arrived }: TestStoreParts): TestStore {
  const published: MemoryMessage[] = []
  let statements = 0
  let isFeeding = false
  /** What becomes visible while it is somebody's turn is his. */
  let turn: MemoryMessage[] | null = null
  const memory = createMemoryDatabase({
    now: clock.now,
    arrived(messages: readonly MemoryMessage[], arrival: Arrival) {
      if (isFeeding) return
      if (arrival === 'publish' || arrival === 'follow-on')
        published.push(...messages.map((message) => ({ ...message })))
      if (turn === null) arrived(messages)
      else turn.push(...messages)
    },
  })
  const during: TestStore['during'] = (work) => {
    const own: MemoryMessage[] = []
    const outer = turn
    turn = own
    try {
      return { value: work(), arrived: own }
    } finally {
      turn = outer
    }
  }
  const counted = derived<MemoryDatabase>(memory, {
    run<Row>(statement: Statement<Row>) {
      statements++
      return memory.run(statement)
    },
  })
  const database = (): Database => {
    const own: MemoryMessage[] = []
    return derived<Database>(counted, {
      run<Row>(statement: Statement<Row>) {
        const { value, arrived: now } = during(() => counted.run(statement))
        own.push(...now)
        return value
      },
      delivered: () => deliver(own.splice(0)),
      async transaction(work) {
        const value = await memory.transaction((tx, handle) => work(tx, testTransaction(handle, database)))
        await deliver([])
        return value
      },
    })
  }
  return {
    memory: counted,
    database,
    opener: {
      transaction: (work) => memory.transaction((tx, handle) => work(tx, testTransaction(handle, database))),
    },
    published,
    during,
    feed(statement) {
      isFeeding = true
      try {
        return counted.run(statement)
      } finally {
        isFeeding = false
      }
    },
    get statements() {
      return statements
    },
  }
}
