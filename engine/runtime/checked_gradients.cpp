#include "engine/runtime/checked_gradients.h"

namespace cutaway {
namespace {

template <class Row>
void writeNumbers(ByteWriter& out, const Row& row) {
    out.pod(row.gradient);
    out.pod(row.difference);
    out.pod(row.verdict);
    out.text(row.why);
}
template <class Row>
void readNumbers(ByteReader& in, Row& row) {
    row.gradient = in.pod<double>();
    row.difference = in.pod<double>();
    row.verdict = in.pod<GradientVerdict>();
    row.why = in.text();
}

void writeGradientRow(ByteWriter& out, const GradientRow& row) {
    out.text(row.input);
    out.text(row.output);
    writeNumbers(out, row);
}
GradientRow readGradientRow(ByteReader& in) {
    GradientRow row;
    row.input = in.text();
    row.output = in.text();
    readNumbers(in, row);
    return row;
}

}  // namespace

void writeRoles(ByteWriter& out, const Module& module) {
    const auto write = [&](const auto& specs) {
        out.count(specs.size());
        for (const auto& spec : specs) {
            out.pod(spec.kind);
            out.text(spec.target);
        }
    };
    write(module.inputs);
    write(module.outputs);
}

void readRoles(ByteReader& in, Module& module) {
    const auto read = [&](auto& specs) {
        in.each([&] {
            auto& spec = specs.emplace_back();
            spec.kind = in.pod<decltype(spec.kind)>();
            spec.target = in.text();
        });
    };
    read(module.inputs);
    read(module.outputs);
}

void writeGradientCheck(ByteWriter& out, const GradientCheck& check) {
    out.pod(check.seed);
    out.pod(check.gradients);
    writeGradientRow(out, check.all);
    out.count(check.each.size());
    for (const GradientRow& row : check.each) writeGradientRow(out, row);
    out.pod(check.callsChecked);
    out.count(check.calls.size());
    for (const DerivativeRow& row : check.calls) {
        out.text(row.name);
        out.text(row.op);
        out.text(row.operand);
        writeNumbers(out, row);
    }
    out.pod(check.runs);
    out.count(check.remarks.size());
    for (const std::string& remark : check.remarks) out.text(remark);
}

GradientCheck readGradientCheck(ByteReader& in) {
    GradientCheck check;
    check.seed = in.pod<uint64_t>();
    check.gradients = in.pod<int>();
    check.all = readGradientRow(in);
    in.each([&] { check.each.push_back(readGradientRow(in)); });
    check.callsChecked = in.pod<int>();
    in.each([&] {
        DerivativeRow& row = check.calls.emplace_back();
        row.name = in.text();
        row.op = in.text();
        row.operand = in.text();
        readNumbers(in, row);
    });
    check.runs = in.pod<int>();
    in.each([&] { check.remarks.emplace_back(in.text()); });
    return check;
}

}  // namespace cutaway
