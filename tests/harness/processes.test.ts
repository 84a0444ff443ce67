// Whose end brings whose: the application, its supervisor, the server.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { ask } from '../support/ask.ts'
import { chosenBinaries } from '../support/chosen-binaries.ts'
import { type InstalledLauncher, installLauncher } from '../support/installed-launcher.ts'
import { exists, isRunning, processesIn } from '../support/operating-system.ts'
import { eventually } from '../support/signals.ts'

interface Server {
  readonly url: string
  readonly dataDirectory: string
  readonly pid: number
}

// What the script of another process passes on, so that it starts the same server as the tests do.
const forScript = JSON.stringify({ ...chosenBinaries, settings: { fsync: 'off' } })
const ordinaryUser = process.getuid?.() === 0 ? { uid: 1000 } : {}

function gone(server: Server): Promise<unknown> {
  return eventually(async () => !isRunning(server.pid) && !(await exists(server.dataDirectory)), {
    what: `PostgreSQL (pid ${server.pid}) and ${server.dataDirectory} to be gone`,
  })
}

describe('compiled and run by plain node', () => {
  let launcher: InstalledLauncher

  beforeAll(async () => {
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
    { how: 'SIGKILL', script: '', end: (pid: number) => process.kill(pid, 'SIGKILL'), code: null },
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
