// The text form of explanations and tables.
#include "src/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/explain_model.h"

namespace chord {
namespace {

constexpr std::size_t kTextWidth = 100;

// One line of the table: a label and a cell per projection. No cells: a heading.
struct Line {
  std::string label;
  std::vector<std::string> cells;
};

struct Column {
  std::string title;
  const Explanation* explanation = nullptr;
};

template <class CellOf>
Line line_of(std::string label, const std::vector<Column>& columns, CellOf cell_of) {
  Line line{"  " + std::move(label), {}};
  for (const Column& column : columns) line.cells.push_back(cell_of(*column.explanation));
  return line;
}

template <class Value>
std::string text_or_dash(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

std::string yes_or_no(const std::optional<bool>& value) {
  return value ? (*value ? "yes" : "no") : "-";
}

std::string micros(double us) { return fmt::format("{:.1f} us", us); }

std::string with_thousands(std::int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string render(const std::vector<Line>& lines) {
  std::size_t label_width = 0;
  std::size_t cell_width = 0;
  for (const Line& line : lines) {
    if (!line.cells.empty()) label_width = std::max(label_width, line.label.size());
    for (const std::string& cell : line.cells) cell_width = std::max(cell_width, cell.size());
  }
  std::string text;
  for (const Line& line : lines) {
    if (line.cells.empty()) {
      text += line.label + "\n";
      continue;
    }
    text += fmt::format("{:<{}}", line.label, label_width);
    for (const std::string& cell : line.cells) text += fmt::format("  {:>{}}", cell, cell_width);
    text += "\n";
  }
  return text;
}

// Breaks at spaces; following lines are indented below the first one's text.
std::string wrapped(const std::string& head, const std::string& text, std::size_t indent) {
  std::string all = head;
  std::size_t used = head.size();
  std::size_t at = 0;
  bool first = true;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (!first && used + 1 + (end - at) > kTextWidth) {
      all.append("\n").append(indent, ' ');
      used = indent;
    } else if (!first) {
      all += " ";
      ++used;
    }
    all += text.substr(at, end - at);
    used += end - at;
    at = end + 1;
    first = false;
  }
  return all + "\n";
}

std::string size_of(const GemmDescriptor& d) {
  if (d.family == Family::grouped_masked)
    return fmt::format("expected_m {}, max_m {}", with_thousands(d.expected_m),
                       with_thousands(d.max_m));
  return fmt::format("{} {}", with_thousands(d.rows),
                     d.family == Family::indexed ? "routed rows" : "rows");
}

std::string heading(const GemmDescriptor& d, const std::string& subject) {
  return fmt::format("{}: {}, {} on {} experts, {} with {} SMs\n\n", subject, name(d.family),
                     size_of(d), d.experts, name(d.arch), d.num_sms);
}

void add_published(std::vector<Line>& lines, const std::vector<Column>& columns) {
  const auto add = [&](const char* label, auto cell_of) {
    const auto of_schedule = [&](const Explanation& e) { return cell_of(e.decision.schedule); };
    lines.push_back(line_of(label, columns, of_schedule));
  };
  using S = const PublishedSchedule&;
  lines.push_back({"published schedule", {}});
  add("block_m x block_n x block_k",
      [](S s) { return fmt::format("{} x {} x {}", s.block_m, s.block_n, s.block_k); });
  add("num_stages", [](S s) { return fmt::format("{}", s.num_stages); });
  if (columns.front().explanation->decision.descriptor.family == Family::indexed) {
    add("ctas_per_sm", [](S s) { return text_or_dash(s.ctas_per_sm); });
    add("swap_ab", [](S s) { return yes_or_no(s.swap_ab); });
    add("stream_k", [](S s) { return yes_or_no(s.stream_k); });
  } else {
    add("cluster_m x cluster_n", [](S s) {
      return fmt::format("{} x {}", text_or_dash(s.cluster_m), text_or_dash(s.cluster_n));
    });
    add("smem_bytes", [](S s) { return s.smem_bytes ? with_thousands(*s.smem_bytes) : "-"; });
  }
}

void add_kernel(std::vector<Line>& lines, const std::vector<Column>& columns) {
  const auto add = [&](const char* label, auto cell_of) {
    lines.push_back(line_of(label, columns, cell_of));
  };
  using E = const Explanation&;
  lines.push_back({"kernel that runs", {}});
  add("mainloop", [](E e) { return std::string(name(e.decision.kernel.mainloop)); });
  add("block_m", [](E e) { return fmt::format("{}", e.decision.kernel.block_m); });
  add("tile_m x tile_n", [](E e) {
    return fmt::format("{} x {}", e.decision.kernel.tile_m, e.decision.kernel.tile_n);
  });
  add("compiled widths", [](E e) {
    const KernelSchedule& kernel = e.decision.kernel;
    return kernel.widths == 1 ? std::to_string(kernel.tile_m)
                              : fmt::format("{} to {} by {}", abi::smallest_width(kernel),
                                            kernel.tile_m, kernel.width_step);
  });
  add("stages x k64 slices", [](E e) {
    return fmt::format("{} x {}", e.decision.kernel.stages, e.decision.kernel.slices_per_stage);
  });
  add("release", [](E e) { return std::string(name(e.decision.kernel.release)); });
  add("dequantisation", [](E e) { return std::string(name(e.decision.kernel.dequantisation)); });
  add("split", [](E e) { return std::string(name(e.decision.kernel.split)); });
  add("epilogue", [](E e) { return std::string(name(e.decision.kernel.epilogue)); });
  add("shared bytes", [](E e) { return with_thousands(e.shared_bytes); });
  add("threads", [](E e) { return fmt::format("{}", e.threads); });
  add("registers",
      [](E e) { return e.facts ? fmt::format("{}", e.facts->registers) : "not compiled"; });
  add("local bytes (spills)",
      [](E e) { return e.facts ? fmt::format("{}", e.facts->local_bytes) : "not compiled"; });
}

void add_identity(std::vector<Line>& lines, const std::vector<Column>& columns) {
  using E = const Explanation&;
  lines.push_back({"cubin", {}});
  lines.push_back(line_of("key", columns, [](E e) { return e.key ? *e.key : "not known"; }));
  lines.push_back(
      line_of("in the cache", columns, [](E e) { return std::string(e.cached ? "yes" : "no"); }));
}

void add_floors(std::vector<Line>& lines, const std::vector<Column>& columns) {
  const auto add = [&](const char* label, auto cell_of) {
    lines.push_back(line_of(label, columns, cell_of));
  };
  using E = const Explanation&;
  lines.push_back({"these rows, spread evenly (a model, not a measurement)", {}});
  add("experts reached",
      [](E e) { return fmt::format("{} of {}", e.active_experts, e.decision.descriptor.experts); });
  add("rows padded to tiles of 8", [](E e) { return with_thousands(e.padded_rows); });
  add("padding waste", [](E e) { return fmt::format("{:.0f} %", 100 * e.padding_waste); });
  add("memory floor", [](E e) { return micros(e.memory_floor_us); });
  add("tensor floor", [](E e) { return micros(e.tensor_floor_us); });
  add("predicted", [](E e) { return micros(e.predicted_us); });
}

std::string facts_table(const std::vector<Column>& columns) {
  std::vector<Line> lines;
  if (columns.size() > 1) {
    Line titles{"", {}};
    for (const Column& column : columns) titles.cells.push_back(column.title);
    lines.push_back(titles);
  }
  lines.push_back(line_of("N x K", columns, [](const Explanation& e) {
    return fmt::format("{} x {}", e.decision.descriptor.n, e.decision.descriptor.k);
  }));
  if (columns.front().explanation->decision.descriptor.family == Family::indexed)
    lines.push_back(line_of("profile", columns, [](const Explanation& e) {
      const std::string& profile = e.decision.descriptor.profile;
      return profile.empty() ? "none" : profile;
    }));
  lines.push_back(line_of("decided by", columns, [](const Explanation& e) {
    return std::string(name(e.decision.origin));
  }));
  add_published(lines, columns);
  add_kernel(lines, columns);
  add_identity(lines, columns);
  add_floors(lines, columns);
  return render(lines);
}

std::string ceilings_note(Architecture arch) {
  const Ceilings c = ceilings_of(arch);
  return fmt::format("  floors at {} TB/s read and {:.0f} TFLOP/s BF16 ({}); launch {} us\n",
                     c.read_tb_per_s, c.bf16_tflop_per_s, c.source, c.launch_us);
}

// A list under a heading, a title in front of each note; what is true of all columns is said once.
using NotesOf = std::vector<std::string> (*)(const Explanation&);

std::string notes_section(const char* heading, const std::vector<Column>& columns,
                          NotesOf notes_of) {
  std::vector<std::vector<std::string>> notes;
  for (const Column& column : columns) notes.push_back(notes_of(*column.explanation));
  const auto is_shared = [&](const std::string& note) {
    return std::all_of(notes.begin(), notes.end(), [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), note) != list.end();
    });
  };
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (const std::string& note : notes[i]) {
      const bool shared = columns.size() > 1 && is_shared(note);
      if (shared && i > 0) continue;
      text += wrapped(fmt::format("  {:<8}", shared ? "both" : columns[i].title), note, 10);
    }
  return text.empty() ? "" : fmt::format("\n{}\n{}", heading, text);
}

std::vector<std::string> reason_notes(const Explanation& e) {
  std::vector<std::string> notes;
  for (const Reason& reason : e.decision.reasons)
    notes.push_back(fmt::format("{}: {}", reason.rule, reason.text));
  for (const Rejected& one : e.decision.rejected)
    notes.push_back(fmt::format("not {}: {}", one.candidate, one.reason));
  return notes;
}

std::vector<std::string> unhonoured_notes(const Explanation& e) {
  std::vector<std::string> notes;
  for (const Unhonoured& one : e.decision.unhonoured)
    notes.push_back(fmt::format("{}: published {}, kernel {}: {}", one.field, one.published,
                                one.kernel, one.reason));
  return notes;
}

std::vector<std::string> missing_key_notes(const Explanation& e) {
  return e.key ? std::vector<std::string>{} : std::vector<std::string>{e.key_missing};
}

std::string all_sections(const std::vector<Column>& columns) {
  const GemmDescriptor& d = columns.front().explanation->decision.descriptor;
  return facts_table(columns) + ceilings_note(d.arch) +
         notes_section("why", columns, reason_notes) +
         notes_section("published fields that the kernel does not honour", columns,
                       unhonoured_notes) +
         notes_section("why the key is not known", columns, missing_key_notes);
}

// One line of a table of schedules: its heading, or a row's cells.
std::string table_line(std::string_view rows, std::string_view tile, std::string_view stages,
                       std::string_view placement, std::string_view kernel,
                       std::string_view decided_by) {
  return fmt::format("{:>24}  {:>13}  {:>6}  {:>21}  {:>22}  {}\n", rows, tile, stages, placement,
                     kernel, decided_by);
}

std::string table_row(const TableRow& row, bool indexed) {
  const PublishedSchedule& s = row.schedule;
  const std::string placement =
      indexed ? fmt::format("{} {:>7} {:>8}", text_or_dash(s.ctas_per_sm), yes_or_no(s.swap_ab),
                            yes_or_no(s.stream_k))
              : fmt::format("{} x {}", text_or_dash(s.cluster_m), text_or_dash(s.cluster_n));
  const KernelSchedule& k = row.kernel;
  return table_line(
      fmt::format("{} - {}", with_thousands(row.min_rows + 1), with_thousands(row.max_rows)),
      fmt::format("{}x{}x{}", s.block_m, s.block_n, s.block_k), fmt::format("{}", s.num_stages),
      placement, fmt::format("{} {}x{} stages {}", name(k.mainloop), k.tile_m, k.tile_n, k.stages),
      name(row.origin));
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  const GemmDescriptor& d = explanation.decision.descriptor;
  return heading(d, fmt::format("N {} x K {}", d.n, d.k)) + all_sections({{"gemm", &explanation}});
}

std::string to_text(const LayerExplanation& layer) {
  const std::string subject = fmt::format("MoE layer, block_m {} for both", layer.block_m);
  return heading(layer.gate_up.decision.descriptor, subject) +
         all_sections({{"gate_up", &layer.gate_up}, {"down", &layer.down}});
}

std::string to_text(const ScheduleTable& table) {
  const GemmDescriptor& d = table.descriptor;
  const bool indexed = d.family == Family::indexed;
  std::string text = fmt::format("N {} x K {}: {}, {} experts, {} with {} SMs{}\n\n", d.n, d.k,
                                 name(d.family), d.experts, name(d.arch), d.num_sms,
                                 indexed ? fmt::format(", profile {}", d.profile) : "");
  text +=
      table_line(d.family == Family::grouped_masked ? "expected_m" : "rows", "M x N x K", "stages",
                 indexed ? "CTAs swap_ab stream_k" : "cluster", "kernel", "decided by");
  for (const TableRow& row : table.rows) text += table_row(row, indexed);
  return text;
}

std::string to_text(const LayerTable& table) {
  return "gate_up  " + to_text(table.gate_up) + "\ndown  " + to_text(table.down);
}

}  // namespace chord
