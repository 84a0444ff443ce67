import { OutboxError } from '../core/errors.ts'
import { outline } from '../core/show.ts'
import { type Drizzle, drizzleExecutor, isDrizzle } from './drizzle.ts'
import type { Database, Executor } from './executor.ts'
import { isKysely, type Kysely, kyselyExecutor } from './kysely.ts'
import { hasMethods } from './members.ts'
import { pg } from './pg.ts'
import { pglite } from './pglite.ts'
import { postgres } from './postgres.ts'
import { recogniseDatabase } from './recognise.ts'

/** What opens the transactions in which an application's handlers work: its ORM, or the database itself. */
export interface Opener extends Pick<Database, 'transaction'> {
  readonly client: string
}

/** The ORM, told by its own members; a transaction of it is none. Loaded with the runtime: who only publishes opens nothing. */
export function recogniseOrm(candidate: unknown): Opener | null {
  const database = recogniseDatabase(candidate)
  if (database !== null)
    return { client: clientOf(candidate as object), transaction: (work) => database.transaction(work) }
  try {
    return ormOf(candidate as object)
  } catch {
    // Null, or something that throws when a member is looked at: nobody's.
    return null
  }
}

/** The same of an option, which was given for something. */
export function openerOf(orm: unknown): Opener {
  const opener = recogniseOrm(orm)
  if (opener !== null) return opener
  const toBe = 'to be a database of Drizzle or Kysely, and no transaction of it, or what `database` takes'
  throw new OutboxError('OUTBOX_INVALID_OPTION', `expected \`orm\` ${toBe}, got ${outline(orm)}`)
}

function clientOf(database: object): string {
  const known = pg.handle(database) ?? postgres.handle(database) ?? pglite.handle(database)
  return known?.client ?? 'own'
}

interface DrizzleDatabase {
  transaction<T>(work: (tx: Drizzle) => Promise<T>, options: object): Promise<T>
}

interface KyselyDatabase {
  transaction(): { setIsolationLevel(level: string): Opening<Kysely> }
}

interface Opening<Tx> {
  execute<T>(work: (tx: Tx) => Promise<T>): Promise<T>
}

const level = 'read committed'

function ormOf(candidate: object): Opener | null {
  if (isDrizzle(candidate) && !hasMethods(candidate, 'rollback')) {
    const db = candidate as unknown as DrizzleDatabase
    const execute: Opening<Drizzle>['execute'] = (work) =>
      db.transaction((tx) => heard(tx, () => work(tx)), { isolationLevel: level })
    return { client: 'Drizzle', transaction: (work) => open({ execute }, drizzleExecutor, work) }
  }
  if (isKysely(candidate) && !candidate.isTransaction) {
    const db = candidate as unknown as KyselyDatabase
    const transaction: Opener['transaction'] = (work) =>
      open(db.transaction().setIsolationLevel(level), kyselyExecutor, work)
    return { client: 'Kysely', transaction }
  }
  return null
}

/** An ORM rolls back before it passes an error on, and where that fails as well (the connection broke), it passes on the wrong one of the two. */
async function open<Tx, T>(
  opening: Opening<Tx>,
  executorOf: (tx: Tx) => Executor,
  work: (tx: Executor, handle: unknown) => Promise<T>,
): Promise<T> {
  const thrown: unknown[] = []
  const watched = async (tx: Tx): Promise<T> => {
    try {
      return await work(executorOf(tx), tx)
    } catch (error) {
      thrown.push(error)
      throw error
    }
  }
  try {
    return await opening.execute(watched)
  } catch (error) {
    throw thrown.length === 0 ? error : thrown[0]
  }
}

const ignore = (): void => {}
const ignored = new WeakSet<object>()

/**
 * On pg a connection that breaks between two statements is an `error` event, which ends the process when nobody listens (see pg-session.ts);
 * Drizzle does not. Where the work failed, we listen on: it may still have something to say.
 */
async function heard<T>({ session }: Drizzle, work: () => Promise<T>): Promise<T> {
  const client = session?.client
  if (!isEmitter(client) || ignored.has(client)) return work()
  client.on('error', ignore)
  ignored.add(client)
  const result = await work()
  client.removeListener('error', ignore)
  ignored.delete(client)
  return result
}

interface Emitter {
  on(event: string, listener: () => void): unknown
  removeListener(event: string, listener: () => void): unknown
}

function isEmitter(client: unknown): client is Emitter {
  return typeof client === 'object' && client !== null && hasMethods(client, 'on', 'removeListener')
}
