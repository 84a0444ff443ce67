import type { Database, Executor, Session } from '../adapters/executor.ts'
import { OutboxError } from '../core/errors.ts'
import { needsNewConnection } from '../core/failed-statement.ts'
import { beginReadCommitted, commit, readIsolation, rollback, setReadCommitted } from '../sql/isolation.ts'
import type { Statement } from '../sql/statement.ts'
import { before, statementTimeout } from './deadline.ts'
import { createTurns } from './turns.ts'

/**
 * The connection on which an outbox claims, renews and settles: one, for its life, whatever its number of queues. One statement at a
 * time, so a renewal never meets a flush of the same rows; each with a deadline, so a socket that no longer answers cannot hold the others.
 * Made when it is first needed, and anew when it broke. Every statement is a transaction of its own, read committed.
 */
export interface Lane {
  /** Runs a statement when its turn comes. A function is asked for it then; null: there is nothing left to do. */
  run<Row>(given: Given<Row>, options?: RunOptions<Row>): Promise<readonly Row[]>
  /** Another number than before: the connection broke in between, and what was learnt on the old one may not hold on the new. */
  readonly connection: number
  /** Gives the connection back once what was asked for has ended. Statements that come later take any connection. */
  close(): Promise<void>
}

type Given<Row> = Statement<Row> | (() => Statement<Row> | null)

interface RunOptions<Row> {
  /** How many times the usual deadline it may take. @default 1 */
  readonly patience?: number
  /** The answer came after all, when nobody waited for it any more: only where the connection is not ours to close. */
  late?(rows: readonly Row[]): void
}

export interface LaneParts {
  readonly database: Pick<Database, 'run' | 'transaction' | 'connect' | 'capacity'>
  readonly statementTimeoutMs: number
}

// With a single connection, one of our own would leave none to the application.
const leastCapacity = 2

export function createLane({ database, statementTimeoutMs }: LaneParts): Lane {
  const turns = createTurns()
  let connection = 0
  let current: Opening | null = null
  let ready: Opened | null = null
  let isClosed = false

  const forget = (opening: Opening): void => {
    if (current !== opening) return
    connection++
    current = null
  }
  const drop = (opening: Opening): void => {
    opening.abandon()
    forget(opening)
  }
  const runner = async (): Promise<Opened> => {
    const wantsOwn = !isClosed && (database.capacity ?? leastCapacity) >= leastCapacity
    current ??= open(database, wantsOwn, forget)
    const opening = current
    try {
      ready = await before(opening.opened, statementTimeoutMs, () =>
        statementTimeout('connecting', statementTimeoutMs),
      )
      return ready
    } catch (error) {
      drop(opening)
      throw error
    }
  }
  const execute = async <Row>(
    given: Given<Row>,
    { patience = 1, late: onLate }: RunOptions<Row>,
  ): Promise<readonly Row[]> => {
    // What is written already goes at once: the server has nothing to do while the last answer is worked out. Who is asked for it now knows of that answer by then.
    const isWritten = typeof given !== 'function'
    const using = isWritten && ready !== null && ready.opening === current ? ready : await runner()
    const statement = typeof given === 'function' ? given() : given
    if (statement === null) return []
    const timeoutMs = patience * statementTimeoutMs
    const answer = using.run(statement)
    try {
      return await before(answer, timeoutMs, () => statementTimeout(statement.name, timeoutMs))
    } catch (error) {
      if (OutboxError.is(error, 'OUTBOX_STATEMENT_TIMEOUT')) answer.then(onLate, () => {})
      if (needsNewConnection(error)) drop(using.opening)
      throw error
    }
  }
  const giveBack = async (): Promise<void> => {
    const using = await current?.opened.catch(() => null)
    using?.session?.release()
    current = null
  }
  return {
    run: (given, options = {}) => turns.take(() => execute(given, options)),
    get connection() {
      return connection
    },
    close() {
      isClosed = true
      return turns.take(giveBack)
    },
  }
}

/** A connection that is being made, or was. */
interface Opening {
  readonly opened: Promise<Opened>
  /** Closes it, whether it is there already or comes later. */
  abandon(): void
}

function open(database: LaneParts['database'], wantsOwn: boolean, lost: (opening: Opening) => void): Opening {
  let session: Session | undefined
  let isAbandoned = false
  const connect = async (): Promise<Opened> => {
    session = wantsOwn ? await database.connect?.(() => lost(opening)) : undefined
    if (isAbandoned) {
      session?.destroy()
      throw new Error('the connection came too late')
    }
    return { session: session ?? null, opening, run: await readCommitted(database, session ?? null) }
  }
  const opening: Opening = {
    // Not before `opening` is there.
    opened: Promise.resolve().then(connect),
    abandon() {
      isAbandoned = true
      session?.destroy()
    },
  }
  // Whoever waits for it hears of a failure; after a deadline nobody does.
  opening.opened.catch(() => {})
  return opening
}

interface Opened extends Executor {
  readonly session: Session | null
  readonly opening: Opening
}

/**
 * Claims fail with 40001 in repeatable read (41 of 842, with four claimers), and the default is the application's to choose: where it
 * is another, each statement gets a transaction that says so. It cannot be said inside the statement, and a SET would stay on the connection.
 */
async function readCommitted(
  database: LaneParts['database'],
  session: Session | null,
): Promise<Executor['run']> {
  const executor = session ?? database
  const [row] = await executor.run(readIsolation)
  if (row?.isolation === 'read committed') return (statement) => executor.run(statement)
  if (session === null) {
    return (statement) =>
      database.transaction(async (tx) => {
        await tx.run(setReadCommitted)
        return tx.run(statement)
      })
  }
  return async (statement) => {
    await session.run(beginReadCommitted)
    try {
      const rows = await session.run(unkept(statement))
      await session.run(commit)
      return rows
    } catch (error) {
      // When this fails, too, it is the first failure that counts, and the session is of no use.
      await session.run(rollback).catch(session.destroy)
      throw error
    }
  }
}

/** In a transaction, a name that is refused would take the transaction with it. */
function unkept<Row>({ keptText: _, ...statement }: Statement<Row>): Statement<Row> {
  return statement
}
