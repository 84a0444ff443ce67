// The npm package with the binaries, as installers and users leave it; a folder of binaries is taken as it is.
import { chmod, chown, lstat, readdir, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { type InstalledLauncher, installLauncher } from '../support/installed-launcher.ts'
import { exists } from '../support/operating-system.ts'

const isRoot = process.getuid?.() === 0

async function removeLinks(root: string): Promise<string[]> {
  const library = join(root, 'native', 'lib')
  const links: string[] = []
  for (const name of await readdir(library)) {
    if ((await lstat(join(library, name))).isSymbolicLink()) links.push(join(library, name))
  }
  await Promise.all(links.map((link) => unlink(link)))
  return links
}

async function filesBelow(folder: string): Promise<string[]> {
  // A folder may go while it is read.
  return readdir(folder, { recursive: true }).catch(() => [])
}

/** As an install under umask 077 leaves it. */
async function closeToOthers(root: string): Promise<void> {
  for (const name of ['.', ...(await readdir(root, { recursive: true }))]) {
    const { mode } = await stat(join(root, name))
    await chmod(join(root, name), mode & 0o700)
  }
}

describe('an installed package of binaries', () => {
  const startAndStop = `
    const server = await startPostgres()
    print(describe(server))
    await server.stop()
  `
  let launcher: InstalledLauncher

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

  test.runIf(isRoot)('is not written to when it belongs to somebody else: a copy is repaired', async () => {
    const links = await removeLinks(launcher.binaries)
    await chown(join(launcher.binaries, 'native', 'lib'), 1001, 1001)

    const asRoot = await launcher.run(startAndStop).ended
    const asOrdinaryUser = await launcher.run(startAndStop, { uid: 1000 }).ended

    expect([asRoot, asOrdinaryUser]).toMatchObject([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ])
    expect(await Promise.all(links.map(exists))).toEqual(links.map(() => false))
    expect(await launcher.leftovers()).toEqual([
      expect.stringMatching(/^postbox-binaries-.*-0$/),
      expect.stringMatching(/^postbox-binaries-.*-1000$/),
    ])
  })

  test.runIf(isRoot)('is not made executable when it belongs to somebody else: a copy is', async () => {
    const programs = ['initdb', 'postgres'].map((name) => join(launcher.binaries, 'native', 'bin', name))
    for (const program of programs) {
      await chown(program, 1001, 1001)
      await chmod(program, 0o644)
    }

    const { code, stderr } = await launcher.run(startAndStop).ended

    const modes = await Promise.all(programs.map(async (program) => (await stat(program)).mode & 0o777))
    expect({ code, stderr, modes }).toEqual({ code: 0, stderr: '', modes: [0o644, 0o644] })
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
      const path = join(launcher.folder, 'tmp', copy)
      const made = await stat(join(path, 'native', 'bin', 'postgres'))
      const second = await launcher.run(startAndStop).ended
      const kept = await stat(join(path, 'native', 'bin', 'postgres'))

      expect([first, second]).toMatchObject([
        { code: 0, stderr: '' },
        { code: 0, stderr: '' },
      ])
      expect(copy).toMatch(/^postbox-binaries-.*\d+\.\d+/)
      expect(await launcher.leftovers()).toEqual([copy])
      expect([kept.ino, (await stat(path)).mode & 0o777]).toEqual([made.ino, 0o755])
    },
  )

  test.runIf(isRoot)(
    'closed to others file by file is copied open and whole, by two starts at the same time',
    async () => {
      await closeToOthers(launcher.binaries)

      const both = await Promise.all([launcher.run(startAndStop).ended, launcher.run(startAndStop).ended])

      const [copy = '', ...others] = await launcher.leftovers()
      const copied = await readdir(join(launcher.folder, 'tmp', copy), { recursive: true })
      expect(both).toMatchObject([
        { code: 0, stderr: '' },
        { code: 0, stderr: '' },
      ])
      expect(others).toEqual([])
      expect(copied.sort()).toEqual((await readdir(launcher.binaries, { recursive: true })).sort())
    },
  )

  test.runIf(isRoot)(
    'is copied again where a cleaner took files of the copy, and never run from what a stranger can write to',
    async () => {
      await chmod(join(launcher.folder, 'node_modules'), 0o700)
      await launcher.run(startAndStop).ended
      const [copy = ''] = await launcher.leftovers()
      const path = join(launcher.folder, 'tmp', copy)
      await rm(join(path, 'native', 'share'), { recursive: true })

      const repaired = await launcher.run(startAndStop).ended
      await chmod(path, 0o777)
      const refusedAsOpen = await launcher.run(startAndStop).ended
      await chmod(path, 0o755)
      await chown(path, 1001, 1001)
      const refusedAsForeign = await launcher.run(startAndStop).ended

      expect(repaired).toMatchObject({ code: 0, stderr: '' })
      expect([refusedAsOpen, refusedAsForeign]).toMatchObject([
        { code: 1, stderr: expect.stringContaining('belongs to somebody else') },
        { code: 1, stderr: expect.stringContaining('belongs to somebody else') },
      ])
      expect(await launcher.leftovers()).toEqual([copy])
    },
  )

  test.runIf(isRoot)(
    'whose copying was killed in the middle of a file is copied whole by the next start',
    async () => {
      await chmod(join(launcher.folder, 'node_modules'), 0o700)
      const running = launcher.run(startAndStop)
      // Without a pause: the largest file is unfinished for some ten milliseconds only.
      while (!(await filesBelow(join(launcher.folder, 'tmp'))).some((file) => file.includes('libicudata'))) {}
      running.child.kill('SIGKILL')
      await running.ended

      const { code, stderr } = await launcher.run(startAndStop).ended

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    },
  )

  test('without its programs is not copied either, and the failure names the program', async () => {
    await unlink(join(launcher.binaries, 'native', 'bin', 'postgres'))

    const { code, stderr } = await launcher.run(startAndStop).ended

    expect(code).toBe(1)
    expect(stderr).toContain(join(launcher.binaries, 'native', 'bin', 'postgres'))
    expect(await launcher.leftovers()).toEqual([])
  })
})
