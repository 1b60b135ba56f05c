/** Hooks that are commands, whose answers get lost between the command and the server. */
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandHook } from '../../src/hooks/command-hook.ts'
import { openShells } from '../shell/shell-fixture.ts'

test('an answer that cannot be stored is a failure of the hook, and not the absence of an answer', async () => {
  const { shells, workdir, outputDir } = await openShells()
  await mkdir(outputDir, { recursive: true })
  // No file can be made there, as on a full disk or without a free descriptor.
  await symlink('/proc/self', join(outputDir, 'background'))
  const answer = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } }
  const end = await runCommandHook(
    { shells: () => shells, workdir: () => workdir, outputDirectory: outputDir },
    { type: 'command', command: `echo '${JSON.stringify(answer)}'` },
    { point: 'PreToolUse', text: '{}' },
    new AbortController().signal,
  )
  expect(end).toMatchObject({ kind: 'failed', why: expect.stringContaining('could not be stored') })
})
