import { chmod, chown, lstat, mkdir, readdir, readFile, rm, stat, unlink } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseForThisRun, type EmbeddedPostgres, startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { freePort } from '../../packages/embedded/src/free-port.ts'
import { launch } from '../../packages/embedded/src/launch.ts'
import { locatePackage } from '../../packages/embedded/src/locate-binaries.ts'
import {
  compileLauncher,
  type InstalledLauncher,
  installedBinaries,
  installLauncher,
} from '../support/installed-launcher.ts'
import { exists, isReachable, isRunning, processesIn } from '../support/operating-system.ts'
import { eventually } from '../support/signals.ts'

interface Server {
  readonly url: string
  readonly dataDirectory: string
  readonly pid: number
}

const isRoot = process.getuid?.() === 0
const binaries = process.env['POSTGRES_BIN']
const chosen = binaries ? { binaries } : {}
// What the script of another process passes on, so that it starts the same server as the tests do.
const forScript = JSON.stringify({ ...chosen, settings: { fsync: 'off' } })
const ordinaryUser = isRoot ? { uid: 1000 } : {}

async function ask(url: string, query: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query({ text: query, rowMode: 'array' })
    return String(rows[0]?.[0])
  } finally {
    await client.end()
  }
}

function gone(server: Server): Promise<unknown> {
  return eventually(async () => !isRunning(server.pid) && !(await exists(server.dataDirectory)), {
    what: `PostgreSQL (pid ${server.pid}) and ${server.dataDirectory} to be gone`,
    withinMs: 15_000,
  })
}

async function removeLinks(root: string): Promise<string[]> {
  const library = join(root, 'native', 'lib')
  const links: string[] = []
  for (const name of await readdir(library)) {
    if ((await lstat(join(library, name))).isSymbolicLink()) links.push(join(library, name))
  }
  await Promise.all(links.map((link) => unlink(link)))
  return links
}

describe('a started server', () => {
  let server: EmbeddedPostgres

  beforeAll(async () => {
    server = await startPostgres(chosen)
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

    await using server = await startPostgres({ ...chosen, settings })

    expect(await ask(server.url, 'show fsync')).toBe('off')
    expect(await ask(server.url, 'show shared_preload_libraries')).toBe('pg_stat_statements')
    expect(await ask(server.url, 'show listen_addresses')).toBe('127.0.0.1')
  })

  test('leaves no process and no directory after stop(), which may be called twice', async () => {
    const server = await startPostgres(chosen)
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
    const ports = [taken, second]
    const source = binaries
      ? ({ kind: 'folder', folder: binaries } as const)
      : ({ kind: 'package', root: installedBinaries() } as const)

    await using server = await launch({ source, settings: {}, nextPort: async () => ports.shift() ?? 0 })
    rival.close()

    expect(new URL(server.url).port).toBe(String(second))
    expect(ports).toEqual([])
  })

  test('rejects with the words of a server that cannot start, and leaves nothing', async () => {
    vi.stubEnv('TMPDIR', join(tmpdir(), `embedded-failure-${process.pid}`))
    await mkdir(tmpdir(), { mode: 0o755 })
    try {
      const failure = startPostgres({ ...chosen, settings: { shared_buffers: 'much' } })

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
      await using server = await startPostgres(chosen)

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
    await using server = await startPostgres(chosen)
    vi.stubEnv('DATABASE_URL', server.url)

    const database = await databaseForThisRun()
    await database.stop()

    expect([database.url, database.isEmbedded]).toEqual([server.url, false])
    expect(await ask(server.url, 'select 1')).toBe('1')
  })

  test('is an embedded one when DATABASE_URL is not set', async () => {
    vi.stubEnv('DATABASE_URL', '')

    await using database = await databaseForThisRun(chosen)

    expect(database.isEmbedded).toBe(true)
    expect(await ask(database.url, 'select 1')).toBe('1')
  })
})

test('a platform without binaries is named, with the advice to set DATABASE_URL', () => {
  const locate = () => locatePackage({ platform: 'sunos', arch: 'sparc' })

  expect(locate).toThrow(/no PostgreSQL binary for sunos-sparc .*set DATABASE_URL/)
})

describe('compiled and run by plain node', () => {
  let launcher: InstalledLauncher

  beforeAll(async () => {
    await compileLauncher()
    launcher = await installLauncher()
    return () => launcher[Symbol.asyncDispose]()
  })

  test('an ordinary user can start a server, which then runs as that user', async () => {
    const script = `
      const server = await startPostgres(${forScript})
      print(describe(server))
      process.stdin.once('data', async () => { await server.stop(); process.exit() })
    `
    const running = launcher.run(script, ordinaryUser)
    const server = await running.next<Server>()

    const { uid } = await stat(server.dataDirectory)
    const answer = await ask(server.url, 'select 1')
    running.child.stdin?.write('stop\n')

    expect(uid).toBe(ordinaryUser.uid ?? process.getuid?.())
    expect(answer).toBe('1')
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
    expect(await launcher.leftovers()).toEqual([])
  })

  test.each([
    { how: 'it is killed', script: '', end: (pid: number) => process.kill(pid, 'SIGKILL'), code: null },
    { how: 'Ctrl-C', script: '', end: (pid: number) => process.kill(-pid, 'SIGINT'), code: null },
    { how: 'an uncaught exception', script: `throw new Error('uncaught')`, end: () => {}, code: 1 },
    { how: 'process.exit()', script: 'process.exit(3)', end: () => {}, code: 3 },
    { how: 'the end of its script', script: 'process.stdin.destroy()', end: () => {}, code: 0 },
  ])(
    'no process and no directory outlives an application that ends by $how',
    async ({ script, end, code }) => {
      const running = launcher.run(`
      const server = await startPostgres(${forScript})
      print(describe(server))
      process.stdin.once('data', () => { ${script} })
    `)
      const server = await running.next<Server>()
      expect(isRunning(server.pid)).toBe(true)

      end(running.child.pid as number)
      running.child.stdin?.end('now\n')

      expect((await running.ended).code).toBe(code)
      await gone(server)
      await eventually(async () => (await launcher.leftovers()).length === 0, {
        what: 'an empty temporary folder',
      })
    },
  )

  test('an application killed while initdb runs leaves nothing either', async () => {
    const running = launcher.run(`await startPostgres(${forScript})`)
    const directory = await eventually(async () => (await launcher.leftovers())[0], { what: 'the directory' })
    await eventually(() => exists(join(launcher.folder, 'tmp', directory, 'data', 'base')), {
      what: 'initdb at work',
    })

    running.child.kill('SIGKILL')
    await running.ended

    await eventually(async () => (await launcher.leftovers()).length === 0, {
      what: 'an empty temporary folder',
    })
    expect(await processesIn(directory)).toEqual([])
  })

  test('an application that handles Ctrl-C itself keeps its server until it ends', async () => {
    const running = launcher.run(`
      const server = await startPostgres(${forScript})
      process.once('SIGINT', () => print('interrupted'))
      process.stdin.once('data', () => process.exit(0))
      print(describe(server))
    `)
    const server = await running.next<Server>()

    process.kill(-(running.child.pid as number), 'SIGINT')
    const word = await running.next()
    // A shutdown, had one begun, would end this statement.
    const answer = await ask(server.url, `select 'still there' from pg_sleep(1)`)
    running.child.stdin?.end('now\n')

    expect([word, answer]).toEqual(['interrupted', 'still there'])
    expect((await running.ended).code).toBe(0)
    await gone(server)
  })

  test('a server that dies does not take the application with it', async () => {
    const running = launcher.run(`
      const server = await startPostgres(${forScript})
      print(describe(server))
      process.stdin.once('data', async () => { await server.stop(); print('alive'); process.exit(0) })
    `)
    const server = await running.next<Server>()

    process.kill(server.pid, 'SIGKILL')
    await eventually(() => !isRunning(server.pid), { what: 'the server to die' })
    running.child.stdin?.write('stop\n')

    expect(await running.next()).toBe('alive')
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
    expect(await launcher.leftovers()).toEqual([])
  })
})

// These are about the npm package with the binaries; a folder of binaries is taken as it is.
describe('an installed package of binaries', () => {
  const startAndStop = `
    const server = await startPostgres()
    print(describe(server))
    await server.stop()
  `
  let launcher: InstalledLauncher

  beforeAll(compileLauncher)

  beforeEach(async () => {
    launcher = await installLauncher()
    return () => launcher[Symbol.asyncDispose]()
  })

  test('gets its library links back when install scripts were blocked', async () => {
    const links = await removeLinks(launcher.binaries)

    const running = launcher.run(startAndStop)

    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
    expect(links.length).toBeGreaterThan(0)
    expect(await Promise.all(links.map(exists))).toEqual(links.map(() => true))
  })

  test.runIf(isRoot)('is not written to when it belongs to somebody else', async () => {
    const links = await removeLinks(launcher.binaries)
    await chown(join(launcher.binaries, 'native', 'lib'), 1001, 1001)

    const asRoot = await launcher.run(startAndStop).ended
    const asOrdinaryUser = await launcher.run(startAndStop, { uid: 1000 }).ended

    expect([asRoot, asOrdinaryUser]).toMatchObject([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ])
    expect(await Promise.all(links.map(exists))).toEqual(links.map(() => false))
    expect(await launcher.leftovers()).toEqual([])
  })

  test('becomes executable again', async () => {
    for (const name of ['initdb', 'postgres'])
      await chmod(join(launcher.binaries, 'native', 'bin', name), 0o644)

    const { code, stderr } = await launcher.run(startAndStop).ended

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(await launcher.leftovers()).toEqual([])
  })

  test.runIf(isRoot)(
    'below a closed home is copied once to where the account of the server can reach it',
    async () => {
      await chmod(join(launcher.folder, 'node_modules'), 0o700)

      const first = await launcher.run(startAndStop).ended
      const [copy = ''] = await launcher.leftovers()
      const made = await stat(join(launcher.folder, 'tmp', copy))
      const second = await launcher.run(startAndStop).ended
      const kept = await stat(join(launcher.folder, 'tmp', copy))

      expect([first, second]).toMatchObject([
        { code: 0, stderr: '' },
        { code: 0, stderr: '' },
      ])
      expect(copy).toMatch(/^postbox-binaries-.*\d+\.\d+/)
      expect(await launcher.leftovers()).toEqual([copy])
      expect([kept.ino, kept.mode & 0o777]).toEqual([made.ino, 0o755])
    },
  )

  test.runIf(isRoot)(
    'is copied again when a cleaner took files of the copy, and never run from a stranger',
    async () => {
      await chmod(join(launcher.folder, 'node_modules'), 0o700)
      await launcher.run(startAndStop).ended
      const [copy = ''] = await launcher.leftovers()
      const path = join(launcher.folder, 'tmp', copy)
      await rm(join(path, 'native', 'share'), { recursive: true })

      const repaired = await launcher.run(startAndStop).ended
      await chown(path, 1001, 1001)
      const refused = await launcher.run(startAndStop).ended

      expect(repaired).toMatchObject({ code: 0, stderr: '' })
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain('belongs to somebody else')
      expect(await launcher.leftovers()).toEqual([copy])
    },
  )
})
