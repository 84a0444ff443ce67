import type { Executor, Hearing, Listening, Session } from './executor.ts'
import { type Queryable, rowsExecutor } from './executors.ts'
import { keepingExecutor, type NamingClient } from './kept-statements.ts'
import { quoted } from './quoted.ts'

/** What a pg.Pool gives. */
export interface PgPool extends Queryable {
  connect(): Promise<PoolClient>
}

interface PoolClient extends NamingClient {
  /** Not documented; where it is missing, a connection that no longer answers is closed only when the system gives up on it. */
  readonly connection?: { readonly stream?: { destroy(): void } }
  release(destroy?: boolean): void
  on(event: string, listener: (event: never) => void): unknown
  removeListener(event: string, listener: (event: never) => void): unknown
}

/** One transaction on a connection of the pool. */
export async function inTransaction<T>(
  pool: PgPool,
  work: (tx: Executor, handle: unknown) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let isBroken = false
  let isWorking = false
  // A connection that breaks between two statements is an `error` event, which ends the process when nobody listens. The next
  // statement fails with the same cause, and that is where it is handled.
  const broke = (): void => {
    isBroken = true
  }
  client.on('error', broke)
  const giveBack = (): void => {
    client.removeListener('error', broke)
    client.release()
  }
  try {
    await client.query('begin isolation level read committed', [])
    isWorking = true
    const result = await work(rowsExecutor(client), client)
    isWorking = false
    const { command } = await client.query('commit', [])
    if (command === 'ROLLBACK')
      throw new Error('a statement of the transaction had failed: it was rolled back')
    giveBack()
    return result
  } catch (error) {
    // Work that fails is no reason to make a new connection. All else is: closing it rolls back whatever state it is in, and works on a broken
    // one, too. The listener stays on it then: it may still have something to say while it closes.
    if (isWorking && !isBroken && (await isRolledBack(client))) giveBack()
    else client.release(true)
    throw error
  }
}

function isRolledBack(client: PoolClient): Promise<boolean> {
  return client.query('rollback', []).then(
    () => true,
    () => false,
  )
}

/** A connection of the pool that is ours until it is given back. The statements that it repeats are parsed once. */
export async function connect(pool: PgPool, lost: (error: unknown) => void): Promise<Session> {
  const client = await pool.connect()
  return { ...sessionOf(client, lost), ...keepingExecutor(client, pool) }
}

/** A client of the pool that tells when it breaks: once, and not when it was given back. */
function sessionOf(client: PoolClient, lost: (error: unknown) => void): Session {
  let isOurs = true
  const leave = (destroy: boolean): void => {
    if (!isOurs) return
    isOurs = false
    // On one that is closed the listener stays: it may still have something to say, and unheard that ends the process.
    if (!destroy) client.removeListener('error', broke)
    client.removeListener('end', broke)
    client.release(destroy)
    // Closing politely waits for an answer that may never come, and keeps the process alive meanwhile.
    if (destroy) client.connection?.stream?.destroy()
  }
  const broke = (error?: unknown): void => {
    const wasOurs = isOurs
    leave(true)
    if (wasOurs) lost(error ?? new Error('the connection was closed'))
  }
  client.on('error', broke)
  client.on('end', broke)
  return { ...rowsExecutor(client), release: () => leave(false), destroy: () => leave(true) }
}

interface Notification {
  readonly channel: string
  readonly payload?: string
}

/** One that listens. */
export async function listen(
  pool: PgPool,
  channels: readonly string[],
  hearing: Hearing,
): Promise<Listening> {
  const client = await pool.connect()
  const session = sessionOf(client, hearing.lost)
  const hear = ({ channel, payload = '' }: Notification): void => hearing.notified(channel, payload)
  client.on('notification', hear)
  try {
    for (const channel of channels) await client.query(`listen ${quoted(channel)}`, [])
  } catch (error) {
    session.destroy()
    throw error
  }
  const end = async (): Promise<void> => {
    client.removeListener('notification', hear)
    try {
      await client.query('unlisten *', [])
      await client.query('select pg_advisory_unlock_all()', [])
      session.release()
    } catch {
      session.destroy()
    }
  }
  return { run: session.run, end, destroy: session.destroy }
}
