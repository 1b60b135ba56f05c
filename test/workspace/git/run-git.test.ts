/** How git is run, and ended. */
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hostLauncher } from '../../../src/sandbox/launch.ts'
import { runGit } from '../../../src/workspace/git/run-git.ts'
import { until } from '../../support/until.ts'

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test.each(['an abort', 'too much output'])(
  'git that is ended by %s leaves no process that has its output',
  async (reason) => {
    const place = mkdtempSync(join(tmpdir(), 'run-git-'))
    const [git, note, gitDir] = [join(place, 'git'), join(place, 'note'), join(place, 'repository')]
    await mkdir(gitDir)
    const output = reason === 'too much output' ? 'head -c 2000 /dev/zero' : ':'
    await writeFile(
      git,
      `#!/bin/sh\nsleep 1000 &\necho $! >${note}.new\nmv ${note}.new ${note}\n${output}\nsleep 1000\n`,
    )
    await chmod(git, 0o755)
    const limits = { timeoutMs: 600_000, outputBytes: 1000 }
    const ended = new AbortController()
    const running = runGit({ launcher: hostLauncher, program: () => git, limits }, ['status'], {
      workdir: place,
      gitDir,
      privateDir: place,
      signal: ended.signal,
    })
    running.catch(() => {})
    const child = await until('the process of git', async () => {
      return await readFile(note, 'utf8').then(Number, () => undefined)
    })
    if (reason === 'an abort') ended.abort(new Error('an abort'))
    await expect(running).rejects.toThrow(reason === 'an abort' ? 'an abort' : 'was ended')
    await until('the end of the process', async () => !isAlive(child))
    await rm(place, { recursive: true })
  },
)
