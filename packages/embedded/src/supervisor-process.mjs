// Owns one throw-away server: its directory, its processes and their end. It is a process of its own because only
// another process can clean up after a SIGKILL, and plain JavaScript because Node 20 cannot run TypeScript: both
// src/ and dist/ start this very file. The channel to the process that wants the database is its lease on life: at
// its end, however that came about, the server is stopped and the directory removed.
import { spawn } from 'node:child_process'
import { chownSync, closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// SIGINT is a fast shutdown, SIGQUIT an immediate one. Nothing is lost by impatience: the data is about to be deleted.
const escalation = [
  { signal: 'SIGINT', afterMs: 0 },
  { signal: 'SIGQUIT', afterMs: 10_000 },
  { signal: 'SIGKILL', afterMs: 20_000 },
]

const account = JSON.parse(process.argv[2])
const directory = mkdtempSync(join(tmpdir(), 'postbox-postgres-'))
if (account.uid !== undefined) chownSync(directory, account.uid, account.gid)

let child
let isStopping = false

process.on('message', run)
process.once('disconnect', stop)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)
report({ kind: 'directory', directory })
// The other side may have gone while this module was loading, before anybody listened for it.
if (!process.connected) stop()

function run({ file, args, env, log }) {
  if (isStopping) return
  const output = openSync(join(directory, log), 'w')
  const stdio = ['ignore', output, output]
  child = spawn(file, args, { ...account, cwd: directory, env, stdio, windowsHide: true })
  closeSync(output)
  if (child.pid !== undefined) report({ kind: 'started', pid: child.pid })
  child.once('error', (error) => ended(error.message))
  child.once('exit', (code, signal) => ended(signal ?? `exit code ${code}`))
}

function ended(reason) {
  child = undefined
  report({ kind: 'ended', reason })
  if (isStopping) removeAndExit()
}

function stop() {
  if (isStopping) return
  isStopping = true
  if (child === undefined) removeAndExit()
  for (const { signal, afterMs } of escalation) setTimeout(() => child?.kill(signal), afterMs)
}

function removeAndExit() {
  rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  process.exit(0)
}

function report(message) {
  // With a callback, a reader that is gone is an argument nobody looks at instead of an uncaught error.
  process.send(message, () => {})
}
