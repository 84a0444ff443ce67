import type { Hearing, Listening } from './executor.ts'
import { type Queryable, rowsExecutor } from './executors.ts'
import { quoted } from './quoted.ts'

/** PGlite, as far as listening goes. */
export interface ListeningPGlite extends Queryable {
  /** The name of the channel as SQL: it is not quoted for us. */
  listen(channel: string, onNotify: (payload: string) => void): Promise<() => Promise<void>>
}

/** On the one session that there is. */
export async function listen(
  db: ListeningPGlite,
  channels: readonly string[],
  hearing: Hearing,
): Promise<Listening> {
  const unlisten = await Promise.all(
    channels.map((channel) => db.listen(quoted(channel), (payload) => hearing.notified(channel, payload))),
  )
  const end = async (): Promise<void> => void (await Promise.allSettled(unlisten.map((stop) => stop())))
  return { ...rowsExecutor(db), end, destroy: () => void end() }
}
