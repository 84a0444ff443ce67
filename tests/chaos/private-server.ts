// A server of one test's own, which can be stopped the hard way and started again on the same data.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPostgres } from '@postbox/embedded'
import { locatePackage } from '../../packages/embedded/src/locate-package.ts'
import { tryBinaries, usableBinaries } from '../../packages/embedded/src/usable-binaries.ts'
import { ask } from '../support/ask.ts'
import { chosenBinaries } from '../support/chosen-binaries.ts'
import { isRunning } from '../support/operating-system.ts'
import { eventually } from '../support/signals.ts'

export interface PrivateServer extends AsyncDisposable {
  readonly url: string
  /** `pg_ctl stop -m immediate`: every connection ends without a word, and what is in memory is lost. Resolves when it is down. */
  crash(): Promise<void>
  /** Resolves when it has recovered and answers. */
  restart(): Promise<void>
}

export async function startPrivateServer(): Promise<PrivateServer> {
  const { url, dataDirectory, stop } = await startPostgres(chosenBinaries)
  const { binaries } = chosenBinaries
  const { folder, account } = await (binaries === undefined
    ? usableBinaries(locatePackage())
    : tryBinaries(binaries))
  let end = async (): Promise<void> => {}
  return {
    url,
    async crash() {
      const pid = Number.parseInt(await readFile(join(dataDirectory, 'postmaster.pid'), 'utf8'), 10)
      process.kill(pid, 'SIGQUIT')
      await eventually(() => !isRunning(pid), { what: 'the server to be down' })
    },
    async restart() {
      const settings = { port: new URL(url).port, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
      const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      const server = spawn(join(folder, 'postgres'), ['-D', dataDirectory, ...options], {
        ...account,
        cwd: dataDirectory,
        stdio: 'ignore',
      })
      const ended = once(server, 'close')
      end = async () => {
        server.kill('SIGQUIT')
        await ended
      }
      await eventually(() => ask(url, 'select 1'), { what: 'the server to answer' })
    },
    async [Symbol.asyncDispose]() {
      await end()
      await stop()
    },
  }
}
