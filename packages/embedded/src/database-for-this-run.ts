import { type StartOptions, startPostgres } from './start-postgres.ts'

export interface DatabaseForThisRun extends AsyncDisposable {
  readonly url: string
  readonly isEmbedded: boolean
  /** Stops an embedded server; leaves one that was there before alone. */
  stop(): Promise<void>
}

/** The server of DATABASE_URL if that is set, else an embedded one. */
export async function databaseForThisRun(options?: StartOptions): Promise<DatabaseForThisRun> {
  const url = process.env['DATABASE_URL']
  if (!url) {
    const postgres = await startPostgres(options)
    return { url: postgres.url, isEmbedded: true, stop: postgres.stop, [Symbol.asyncDispose]: postgres.stop }
  }
  const stop = async () => {}
  return { url, isEmbedded: false, stop, [Symbol.asyncDispose]: stop }
}
