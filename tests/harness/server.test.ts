import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseForThisRun, type EmbeddedPostgres, startPostgres } from '@postbox/embedded'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { locatePackage } from '../../packages/embedded/src/locate-package.ts'
import { superviseServer } from '../../packages/embedded/src/supervise-server.ts'
import { tryBinaries, usableBinaries } from '../../packages/embedded/src/usable-binaries.ts'
import { ask } from '../support/ask.ts'
import { chosenBinaries } from '../support/chosen-binaries.ts'
import { exists, freePort, isReachable, isRunning } from '../support/operating-system.ts'
import { eventually } from '../support/signals.ts'

const isRoot = process.getuid?.() === 0

describe('a started server', () => {
  let server: EmbeddedPostgres

  beforeAll(async () => {
    server = await startPostgres(chosenBinaries)
    return () => server.stop()
  })

  test('answers on 127.0.0.1 without a password and on no other address of the machine', async () => {
    const { port } = new URL(server.url)
    const others = Object.values(networkInterfaces())
      .flatMap((entries) => entries ?? [])
      .filter(({ address, scopeid }) => address !== '127.0.0.1' && !scopeid)

    const answer = await ask(server.url, 'select current_user')
    const reached = await Promise.all(others.map(({ address }) => isReachable(address, Number(port))))

    expect(server.url).toMatch(/^postgres:\/\/postgres@127\.0\.0\.1:\d+\/postgres$/)
    expect(answer).toBe('postgres')
    expect(reached).toEqual(others.map(() => false))
    expect(await ask(server.url, 'show listen_addresses')).toBe('127.0.0.1')
    expect(await ask(server.url, 'show unix_socket_directories')).toBe(server.dataDirectory)
  })

  test('keeps its data in a directory of the temporary folder that only its account may enter', async () => {
    const { mode, uid } = await stat(server.dataDirectory)
    const parent = await stat(join(server.dataDirectory, '..'))

    expect(server.dataDirectory.startsWith(tmpdir())).toBe(true)
    expect([mode & 0o777, parent.mode & 0o777]).toEqual([0o700, 0o700])
    expect([uid, parent.uid]).toEqual(isRoot ? [65_534, 65_534] : [process.getuid?.(), process.getuid?.()])
  })

  test('is UTF-8 with a locale that does not depend on the machine', async () => {
    const major = Number(await ask(server.url, `select current_setting('server_version_num')::int / 10000`))
    const provider = await ask(
      server.url,
      `select datlocprovider from pg_database where datname = 'postgres'`,
    )

    expect(await ask(server.url, 'show server_encoding')).toBe('UTF8')
    expect(await ask(server.url, `select upper('é')`)).toBe('É')
    expect(provider).toBe(major >= 17 ? 'b' : 'c')
  })

  test('writes durably unless told otherwise', async () => {
    expect(await ask(server.url, 'show fsync')).toBe('on')
  })
})

describe('starting and stopping', () => {
  test('gives the server the settings it was given, but never another address', async () => {
    const settings = { fsync: 'off', shared_preload_libraries: 'pg_stat_statements', listen_addresses: '*' }

    await using server = await startPostgres({ ...chosenBinaries, settings })

    expect(await ask(server.url, 'show fsync')).toBe('off')
    expect(await ask(server.url, 'show shared_preload_libraries')).toBe('pg_stat_statements')
    expect(await ask(server.url, 'show listen_addresses')).toBe('127.0.0.1')
  })

  test('leaves no process and no directory after stop(), which may be called twice', async () => {
    const server = await startPostgres(chosenBinaries)
    const pid = Number.parseInt(await readFile(join(server.dataDirectory, 'postmaster.pid'), 'utf8'), 10)

    await Promise.all([server.stop(), server.stop()])
    await server.stop()

    expect(isRunning(pid)).toBe(false)
    expect(await exists(join(server.dataDirectory, '..'))).toBe(false)
  })

  test('takes another port when somebody took the first one', async () => {
    const rival = createServer().listen(0, '127.0.0.1')
    await eventually(() => rival.listening, { what: 'the rival to listen' })
    const taken = (rival.address() as AddressInfo).port
    const second = await freePort()
    const folder = chosenBinaries.binaries
    const binaries = await (folder ? tryBinaries(folder) : usableBinaries(locatePackage()))

    await using server = await superviseServer({ binaries, settings: {}, ports: [taken, second] })
    rival.close()

    expect(new URL(server.url).port).toBe(String(second))
  })

  test('rejects with the words of a server that cannot start, and leaves nothing', async () => {
    vi.stubEnv('TMPDIR', join(tmpdir(), `embedded-failure-${process.pid}`))
    await mkdir(tmpdir(), { mode: 0o755 })
    try {
      const failure = startPostgres({ ...chosenBinaries, settings: { shared_buffers: 'much' } })

      await expect(failure).rejects.toThrow(
        /PostgreSQL did not start.*invalid value for parameter "shared_buffers": "much"/s,
      )
      expect(await readdir(tmpdir())).toEqual([])
    } finally {
      await rm(tmpdir(), { recursive: true })
      vi.unstubAllEnvs()
    }
  })

  test('works where the path of the temporary folder leaves no room for a socket', async () => {
    vi.stubEnv('TMPDIR', join(tmpdir(), `embedded-${process.pid}-${'long'.repeat(20)}`))
    await mkdir(tmpdir(), { mode: 0o755 })
    try {
      await using server = await startPostgres(chosenBinaries)

      expect(await ask(server.url, 'show unix_socket_directories')).toBe('')
    } finally {
      await rm(tmpdir(), { recursive: true })
      vi.unstubAllEnvs()
    }
  })
})

describe('the database for this run', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  test('is the one of DATABASE_URL, which stop() leaves running', async () => {
    await using server = await startPostgres(chosenBinaries)
    vi.stubEnv('DATABASE_URL', server.url)

    const database = await databaseForThisRun()
    await database.stop()

    expect([database.url, database.isEmbedded]).toEqual([server.url, false])
    expect(await ask(server.url, 'select 1')).toBe('1')
  })

  test('is an embedded one when DATABASE_URL is not set', async () => {
    vi.stubEnv('DATABASE_URL', '')

    await using database = await databaseForThisRun(chosenBinaries)

    expect(database.isEmbedded).toBe(true)
    expect(await ask(database.url, 'select 1')).toBe('1')
  })
})

test('a platform without binaries is named, with the advice to set DATABASE_URL', () => {
  const locate = () => locatePackage('sunos', 'sparc')

  expect(locate).toThrow(/no PostgreSQL binary for sunos-sparc .*set DATABASE_URL/)
})
