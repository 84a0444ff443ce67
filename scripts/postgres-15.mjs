// Looks for the server binaries of PostgreSQL 15, the oldest release that the tests run on.
// Prints their folder and ends with 0, or prints nothing and ends with 1.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const debianFolder = '/usr/lib/postgresql/15/bin'

/** @returns {string | undefined} the folder with `initdb` and `postgres` of release 15 */
export function findPostgres15() {
  const named = process.env.POSTGRES_15_BIN
  if (named !== undefined && named !== '') {
    if (isRelease15(named)) return named
    throw new Error(`POSTGRES_15_BIN is ${named}, which holds no initdb and postgres of release 15`)
  }
  return [outputOf('pg_config', ['--bindir']), debianFolder].find(isRelease15)
}

function isRelease15(folder) {
  if (folder === '' || !existsSync(join(folder, 'initdb'))) return false
  return /\(PostgreSQL\) 15\b/.test(outputOf(join(folder, 'postgres'), ['--version']))
}

function outputOf(command, args) {
  const { stdout } = spawnSync(command, args, { encoding: 'utf8' })
  return (stdout ?? '').trim()
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = findPostgres15()
  if (folder === undefined) process.exitCode = 1
  else console.log(folder)
}
