/** Redacts secret values of a conversation in the project settings that it stores and shows to its model. */
import { Problem } from '../../contract/problem.ts'
import type { ProjectEntry, ProjectSettings } from '../../contract/project/project-settings.ts'
import type { LoadedProject } from '../../project/load-project.ts'

/** Throws a `Problem` for a rule that contains a secret: it would hold for something else afterwards. */
export function redactProject(loadedProject: LoadedProject, redact: (text: string) => string): LoadedProject {
  const { settings, memory } = loadedProject
  const { permission_rules: rules, skills, commands, agents, ignored } = settings
  if (Object.values(rules).some((texts) => texts.some((text) => redact(text) !== text))) throw secretInRule()
  // A name or a path with a secret in it could not be used after redaction.
  const isPlain = ({ name, path }: { readonly name?: string; readonly path: string }) =>
    redact(path) === path && (name === undefined || redact(name) === name)
  const redactEntries = (entries: readonly ProjectEntry[]) =>
    entries.filter(isPlain).map((entry) => redactEntry(entry, redact))
  const redactedSettings: ProjectSettings = {
    ...settings,
    memory: settings.memory.filter(isPlain),
    skills: redactEntries(skills),
    commands: redactEntries(commands),
    agents: redactEntries(agents).map((entry) => withPlainDefinition(entry, redact)),
    mcp_servers: settings.mcp_servers.filter((name) => redact(name) === name),
    ignored: ignored.map(({ what, path, reason }) => ({
      what: redact(what),
      path: redact(path),
      reason: redact(reason),
    })),
  }
  const texts = memory.filter(({ file }) => isPlain(file)).map(({ file, text }) => ({ file, text: redact(text) }))
  return { ...loadedProject, settings: redactedSettings, memory: texts }
}

function redactEntry(entry: ProjectEntry, redact: (text: string) => string): ProjectEntry {
  const { description, argument_hint: hint, allowed_tools: allowedTools } = entry
  return {
    ...entry,
    description: redact(description),
    ...(hint !== undefined && { argument_hint: redact(hint) }),
    ...(allowedTools && { allowed_tools: allowedTools.filter((text) => redact(text) === text) }),
  }
}

/** A tool, a rule or a model with a secret in it would be another one after redaction: then the agent cannot be called. */
function withPlainDefinition({ definition, ...entry }: ProjectEntry, redact: (text: string) => string): ProjectEntry {
  if (!definition) return entry
  const { prompt, tools = [], disallowed_tools: rules = [], model = '' } = definition
  const isPlain = [...tools, ...rules, model].every((text) => redact(text) === text)
  return isPlain ? { ...entry, definition: { ...definition, prompt: redact(prompt) } } : entry
}

const secretInRule = () =>
  new Problem(
    'invalid_request',
    'setting_sources: a rule in a settings file contains the value of a secret of this conversation. Remove it from the file, or leave the source out.',
  )
