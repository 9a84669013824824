// A conflict of two saves: the reader sees how both texts differ, and decides.
import { Dialog } from "../components/dialog.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatTime, t } from "../i18n.js";
import { Diff } from "./diff.js";
import { COMPARED, fieldsOf } from "./fields.js";

export function Conflict({ theirs, mine, onKeepMine, onContinue, onTakeTheirs, onClose }) {
  const fields = fieldsOf(theirs);
  const others = COMPARED.slice(1).filter((name) => fields[name] !== mine[name]);
  return html`<${Dialog} wide title=${t("documents.conflict")} onClose=${onClose}>
    <p>${t("documents.conflict_text", { revision: theirs.revision, time: formatTime(theirs.updated_at) })}</p>
    ${
      others.length > 0 &&
      html`<ul>${others.map(
        (name) => html`<li><strong>${t(`documents.field_names.${name}`)}:</strong>
      <del>${visible(fields[name]) || "–"}</del> → <ins>${visible(mine[name]) || "–"}</ins></li>`,
      )}</ul>`
    }
    <p class="faint">${t("documents.conflict_legend")}</p>
    <${Diff} before=${fields.body} after=${mine.body} label=${t("documents.differences")} />
    <div class="actions">
      <button class="primary" onClick=${onContinue}>${t("documents.continue_editing")}</button>
      <button class="danger" onClick=${onKeepMine}>${t("documents.save_mine")}</button>
      <button onClick=${onTakeTheirs}>${t("documents.take_theirs")}</button>
    </div>
  <//>`;
}
