/** What the settings file of the command line must not hold. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readSettingsFile } from '../../../src/cli/settings/settings-file.ts'

test.each([
  ['permissions', { deny: ['Bash'] }],
  ['permission_rules', { deny: ['Bash'] }],
  ['disallowed_tools', ['Bash']],
  ['permission_mode', 'plan'],
])('a settings file with %s is refused, and the error says where rules are written', async (name, value) => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'agent-server-settings-'))
  const path = join(directory.path, 'settings.json')
  await writeFile(path, JSON.stringify({ model: 'gpt-5', [name]: value }))
  await expect(readSettingsFile(path, new AbortController().signal)).rejects.toThrow(
    `${path}: ${name} cannot be set in this file. Write --allowed-tools, --disallowed-tools and --permission-mode, or put \`permissions\` into .claude/settings.json of the project.`,
  )
})
