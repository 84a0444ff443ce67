// Owns one throw-away server: its directory, its processes and their end. It is a process of its own because only
// another process can clean up after a SIGKILL, and plain JavaScript because Node 20 cannot run TypeScript: both
// src/ and dist/ start this very file. The channel to the process that wants the database is its lease on life: at
// its end, however that came about, the server is stopped and the directory removed. One order comes in, as the
// argument; one report goes out, ready or failed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

// A fast shutdown, an immediate one, none. Nothing is lost by impatience: the data is about to be deleted.
const escalationMs = { SIGINT: 0, SIGQUIT: 10_000, SIGKILL: 20_000 }
const portAttempts = 5
const startLimitMs = 60_000
// The path of a socket must fit 104 bytes on macOS, 108 on Linux; ".s.PGSQL.65535.lock" takes 20 of them.
const longestSocketDirectory = 84

const { binaries, settings, ports } = JSON.parse(process.argv[2])
const { folder, major, account } = binaries
const directory = mkdtempSync(join(tmpdir(), 'postbox-postgres-'))
const dataDirectory = join(directory, 'data')
let child
let isStopping = false

process.once('disconnect', stop)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)
// The other side may have gone while this module was loading, before anybody listened for it.
if (!process.connected) stop()
const report = await start().catch((error) => ({ kind: 'failed', reason: error.message }))
// With a callback, a reader that is gone is an argument nobody looks at instead of an uncaught error.
process.send(report, () => {})

async function start() {
  if (account.uid !== undefined) chownSync(directory, account.uid, account.gid)
  // The builtin provider came with 17. Before it, a locale of the operating system has to do.
  const locale =
    major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : ['--locale=C.UTF-8']
  const access = ['-A', 'trust', '-U', 'postgres', '-E', 'UTF8']
  const end = await run('initdb', [...access, ...locale, '--lc-messages=C', '--no-sync', '--no-instructions'])
  if (end !== 'exit code 0') throw new Error(`initdb failed (${end}):\n${await read('initdb.log')}`)
  return { kind: 'ready', port: await serve(), dataDirectory }
}

async function serve() {
  for (let attempt = 1; ; attempt += 1) {
    const port = ports.shift() ?? (await freePort())
    const state = await Promise.race([run('postgres', serverArguments(port)), ready()])
    if (state === 'ready') return port
    const output = await read('postgres.log')
    // Between our asking for a port and the server's binding it, anybody may have taken it.
    if (attempt < portAttempts && output.includes('could not bind')) continue
    throw new Error(`PostgreSQL did not start (${state}):\n${output}`)
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

function serverArguments(port) {
  const socketDirectory = Buffer.byteLength(dataDirectory) <= longestSocketDirectory ? dataDirectory : ''
  // After the settings, so that they win: this server asks for no password and must not be reachable from outside.
  const fixed = { port, listen_addresses: '127.0.0.1', unix_socket_directories: socketDirectory }
  return Object.entries({ ...settings, ...fixed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** Reads what pg_ctl reads: the eighth line of postmaster.pid, which no logging setting can redirect. */
async function ready() {
  const server = child
  for (
    const deadline = Date.now() + startLimitMs;
    Date.now() < deadline && child === server;
    await wait(10)
  ) {
    const lines = (await read('data/postmaster.pid')).split('\n')
    if (lines[0] === String(server.pid) && lines[7]?.trim() === 'ready') return 'ready'
  }
  return `not ready after ${startLimitMs} ms`
}

/** Resolves with how it ended: `exit code 0`, `SIGINT`. */
function run(program, args) {
  const log = openSync(join(directory, `${program}.log`), 'w')
  const options = { ...account, cwd: directory, stdio: ['ignore', log, log], windowsHide: true }
  child = spawn(join(folder, program), ['-D', dataDirectory, ...args], options)
  closeSync(log)
  return new Promise((resolve) => {
    const ended = (end) => {
      child = undefined
      if (isStopping) removeAndExit()
      resolve(end)
    }
    child.once('error', (error) => ended(error.message))
    child.once('exit', (code, signal) => ended(signal ?? `exit code ${code}`))
  })
}

function read(file) {
  return readFile(join(directory, file), 'utf8').catch(() => '')
}

function stop() {
  if (isStopping) return
  isStopping = true
  if (child === undefined) removeAndExit()
  for (const [signal, ms] of Object.entries(escalationMs)) setTimeout(() => child?.kill(signal), ms)
}

function removeAndExit() {
  rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  process.exit(0)
}
