import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { accountForServer } from './account.ts'
import { freePort } from './free-port.ts'
import { type Binaries, type BinariesSource, prepareBinaries, program } from './prepare-binaries.ts'
import type { EmbeddedPostgres } from './start-postgres.ts'
import { type RunningCommand, type Supervisor, startSupervisor } from './supervisor.ts'

export interface Launch {
  readonly source: BinariesSource
  readonly settings: Readonly<Record<string, string>>
  /** Where a port comes from. @default the operating system */
  readonly nextPort?: () => Promise<number>
}

const portAttempts = 5
const startLimitMs = 60_000
// The path of a socket must fit 104 bytes on macOS, 108 on Linux; ".s.PGSQL.65535.lock" takes 20 of them.
const longestSocketDirectory = 84

export async function launch({ source, settings, nextPort = freePort }: Launch): Promise<EmbeddedPostgres> {
  const account = accountForServer()
  const supervisor = await startSupervisor(account)
  const dataDirectory = join(supervisor.directory, 'data')
  try {
    const binaries = await prepareBinaries(source, { account, scratch: supervisor.directory })
    await initialise(supervisor, binaries, dataDirectory)
    const port = await serve(supervisor, { binaries, dataDirectory, settings, nextPort })
    supervisor.unref()
    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      dataDirectory,
      stop: supervisor.stop,
      [Symbol.asyncDispose]: supervisor.stop,
    }
  } catch (error) {
    await supervisor.stop()
    throw error
  }
}

async function initialise(supervisor: Supervisor, binaries: Binaries, dataDirectory: string): Promise<void> {
  // The builtin provider came with 17. Before it, a locale of the operating system has to do.
  const locale =
    binaries.major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : ['--locale=C.UTF-8']
  const args = ['-D', dataDirectory, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', ...locale]
  const file = program(binaries, 'initdb')
  const initdb = await supervisor.run({
    file,
    args: [...args, '--lc-messages=C', '--no-sync', '--no-instructions'],
    env: binaries.env,
    log: 'initdb.log',
  })
  const reason = await initdb.ended
  if (reason !== 'exit code 0') throw new Error(`initdb failed (${reason}):\n${await initdb.output()}`)
}

interface Service {
  readonly binaries: Binaries
  readonly dataDirectory: string
  readonly settings: Readonly<Record<string, string>>
  readonly nextPort: () => Promise<number>
}

async function serve(supervisor: Supervisor, service: Service): Promise<number> {
  const { binaries, dataDirectory, nextPort } = service
  for (let attempt = 1; ; attempt += 1) {
    const port = await nextPort()
    const args = serverArguments(service, port)
    const server = await supervisor.run({
      file: program(binaries, 'postgres'),
      args,
      env: binaries.env,
      log: 'postgres.log',
    })
    const state = await Promise.race([server.ended, ready(server, dataDirectory)])
    if (state === 'ready') return port
    const output = await server.output()
    // Between our asking for a port and the server's binding it, anybody may have taken it.
    if (attempt < portAttempts && output.includes('could not bind')) continue
    throw new Error(`PostgreSQL did not start (${state}):\n${output}`)
  }
}

function serverArguments({ dataDirectory, settings }: Service, port: number): string[] {
  const hasRoomForSocket = Buffer.byteLength(dataDirectory) <= longestSocketDirectory
  const all = {
    ...settings,
    // Last, so that they win: this server asks for no password and must not be reachable from outside.
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: hasRoomForSocket ? dataDirectory : '',
  }
  return ['-D', dataDirectory, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}

/** Reads what pg_ctl reads: the eighth line of postmaster.pid, which no logging setting can redirect. */
async function ready(server: RunningCommand, dataDirectory: string): Promise<string> {
  let hasEnded = false
  void server.ended.then(() => {
    hasEnded = true
  })
  for (const deadline = Date.now() + startLimitMs; Date.now() < deadline && !hasEnded; await wait(10)) {
    const file = await readFile(join(dataDirectory, 'postmaster.pid'), 'utf8').catch(() => '')
    const lines = file.split('\n')
    if (lines[0] === String(server.pid) && lines[7]?.trim() === 'ready') return 'ready'
  }
  return hasEnded ? server.ended : `not ready after ${startLimitMs} ms`
}
