/** Project settings on the wire: what a conversation has loaded from the files of its project and of the operator. */
import { z } from 'zod'
import { AgentDefinition } from '../agents/definition.ts'
import { PermissionRules } from '../values/permission.ts'

export const ProjectSource = z
  .enum(['user', 'project', 'local'])
  .meta({ id: 'ProjectSource' })
  .describe(
    '`project`: CLAUDE.md, AGENTS.md, `.claude/` and `.mcp.json` of the workdir. `local`: `.claude/settings.local.json` and CLAUDE.local.md. `user`: the directory in OPENHANDS_USER_SETTINGS_DIR.',
  )
export type ProjectSource = z.infer<typeof ProjectSource>

const Place = {
  source: ProjectSource,
  path: z.string().describe('Relative to the workdir; with the source `user`, to the directory of the operator.'),
}

const MemoryFile = z
  .object({ ...Place, bytes: z.int().nonnegative(), imported_by: z.string().optional().describe('A path.') })
  .meta({ id: 'MemoryFile' })
export type MemoryFile = z.infer<typeof MemoryFile>

const ProjectEntry = z
  .object({
    name: z.string(),
    description: z.string(),
    ...Place,
    argument_hint: z.string().optional(),
    allowed_tools: z
      .array(z.string())
      .optional()
      .describe('Rules that allow calls after its use, until the run ends or the user writes.'),
    definition: AgentDefinition.omit({ description: true }).optional().describe('Of an agent of a trusted file.'),
    user_only: z.literal(true).optional().describe('The agent cannot use it by itself.'),
  })
  .meta({ id: 'ProjectEntry' })
  .describe('A skill, a slash command or an agent: one Markdown file. Its text is read when it is used.')
export type ProjectEntry = z.infer<typeof ProjectEntry>

const IgnoredSetting = z
  .object({
    what: z.string().describe('A setting, a rule or a file.'),
    path: z.string().describe('The file it is in; empty if it is in none.'),
    reason: z.string(),
  })
  .meta({ id: 'IgnoredSetting' })
export type IgnoredSetting = z.infer<typeof IgnoredSetting>

export const ProjectSettings = z
  .object({
    sources: z.array(ProjectSource),
    trusted: z.boolean().describe('`trust_project` of the request.'),
    memory: z.array(MemoryFile).describe('Files whose text is in the system prompt.'),
    skills: z.array(ProjectEntry),
    commands: z.array(ProjectEntry),
    agents: z.array(ProjectEntry),
    mcp_servers: z
      .array(z.string())
      .describe(
        'Names of MCP servers in `.mcp.json`. Those of a trusted project are connected, unless `ignored` has them.',
      ),
    settings_files: z.array(z.object(Place)),
    permission_rules: PermissionRules.describe(
      'Rules from settings files. `PUT permission-rules` does not change them.',
    ),
    ignored: z.array(IgnoredSetting).describe('What was found and has no effect, with the reason.'),
  })
  .meta({ id: 'ProjectSettings' })
  .describe('What was loaded when the conversation was created. Later changes of the files have no effect.')
export type ProjectSettings = z.infer<typeof ProjectSettings>
